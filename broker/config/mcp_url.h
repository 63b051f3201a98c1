/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_MCP_URL_H
#define BROKER_CONFIG_MCP_URL_H

#include <stdbool.h>
#include <stddef.h>

enum { MCP_HOST_MAX = 256 }; // bytes of a host's name, its end too

/*
 * The host a URL leads to, as a program that follows it understands it (WHATWG
 * URL Standard, "Host parsing"): in lower case, percent-decoded, without brackets
 * and a trailing dot. False for what has no scheme, no host, or one that is too long.
 */
bool mcp_url_host(const char *url, char host[MCP_HOST_MAX]);

/*
 * Whether the URL leads to the machine of whoever follows it: localhost and names
 * below it (RFC 6761, 6.3), 127.0.0.0/8 and ::1 in any spelling, and the
 * unspecified addresses 0.0.0.0 and ::, which end up there.
 */
bool mcp_url_is_loopback(const char *url);

/* Whether it is an absolute http or https URL with a host. */
bool mcp_url_is_http(const char *url);

/*
 * The URL without what may be secret: user and password, query, fragment. What
 * does not fit is cut. Returns text.
 */
const char *mcp_url_shown(char *text, size_t size, const char *url);

#endif
