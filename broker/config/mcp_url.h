/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_MCP_URL_H
#define BROKER_CONFIG_MCP_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MCP_HOST_MAX = 256 }; // bytes of a host name, with the NUL

/*
 * Extracts the URL's host as a program that follows the URL reads it (WHATWG URL Standard, "Host
 * parsing"): in lower case, percent-decoded, without brackets and trailing dot. Returns false if
 * the URL has no scheme or no host, or if the host is too long.
 */
bool mcp_url_host(const char *url, char host[MCP_HOST_MAX]);

/*
 * Whether the URL leads to the machine of the program that follows it: localhost and names below it
 * (RFC 6761, 6.3), 127.0.0.0/8 and ::1 in any spelling, and the unspecified addresses 0.0.0.0 and
 * ::, which reach the same machine.
 */
bool mcp_url_is_loopback(const char *url);

/*
 * The port of an http or https URL that leads to localhost, to a name below it, or to 127.0.0.1; 0
 * for any other URL. The other loopback addresses do not count.
 */
uint16_t mcp_url_local_port(const char *url);

/* Whether this is an absolute http or https URL with a host. */
bool mcp_url_is_http(const char *url);

/*
 * Copies the URL without the parts that may be secret: user, password, query and fragment. A copy
 * that does not fit is cut. Returns text.
 */
const char *mcp_url_shown(char *text, size_t size, const char *url);

#endif
