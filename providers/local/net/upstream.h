/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_UPSTREAM_H
#define PROVIDERS_LOCAL_NET_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"
#include "providers/local/net/proxy.h"

/*
 * The HTTP proxy through which this machine reaches the Internet. We find it as curl(1) does for
 * https:// URLs: the first of https_proxy, HTTPS_PROXY, all_proxy and ALL_PROXY that is not empty
 * names it, and no_proxy or NO_PROXY lists the hosts that are reached without it. The relaying
 * process asks it for each connection with CONNECT (RFC 9110, section 9.3.6), whatever the port is;
 * so does the process that holds keys.
 *
 * The other variables, and http_proxy and HTTP_PROXY, may name further proxies. We use none of
 * these, but no program of a cell may reach them either.
 *
 * The proxy resolves the names. So nobody here can check to which addresses they lead.
 */
enum {
	UPSTREAM_PORT = 1080, // if the variable has no port, as with curl(1)
	UPSTREAM_LOGIN_MAX = 512,
	UPSTREAM_KEY_SIZE = (UPSTREAM_LOGIN_MAX + 2) / 3 * 4 + 1,
	UPSTREAM_EXCEPT_SIZE = 8192,
	UPSTREAM_VARIABLE_SIZE = 16,
	UPSTREAM_PLACES_MAX = 6, // of the variables, one of which may be used
	UPSTREAM_HEAD_SIZE = 2 * (NAME_SIZE + 16) + UPSTREAM_KEY_SIZE + 128,
	UPSTREAM_ANSWER_MAX = 16384, // the head of the proxy's answer
};

/* Contains a password: wipe it. Zero-initialised, it stands for no proxy. */
struct upstream {
	struct proxy_target place;                       // its port is 0: there is no proxy
	char key[UPSTREAM_KEY_SIZE];                     // "user:password" in base64; "": none
	char except[UPSTREAM_EXCEPT_SIZE];               // of no_proxy
	char variable[UPSTREAM_VARIABLE_SIZE];           // that names it
	struct proxy_target others[UPSTREAM_PLACES_MAX]; // of proxies that are not used
	uint32_t other_count;
};

/*
 * Reads the variables. Fails with ERROR_CONFIG if they name a proxy that we cannot use, for example
 * one for SOCKS. The error contains no part of their values, because they may have a password. The
 * variables that are not used may name proxies of any kind.
 */
bool upstream_read(
	struct upstream *out, const char *const *environment, struct error *err) ATTR_NODISCARD;

/* Whether this is something that upstream_read can have written. */
bool upstream_is_whole(const struct upstream *upstream);

bool upstream_is_set(const struct upstream *upstream);

/* Whether connections to this target go through the proxy; those to this machine never do. */
bool upstream_takes(const struct upstream *upstream, const struct proxy_target *target);

/*
 * Whether the target is the proxy itself, or one of the others, as the variables name them. A
 * program that reached it could connect to every host.
 */
bool upstream_is(const struct upstream *upstream, const struct proxy_target *target);

/* Lists the places of all these proxies that have this port; returns their number. */
size_t upstream_list(const struct upstream *upstream, uint16_t port,
	const struct proxy_target *out[UPSTREAM_PLACES_MAX]);

/* Writes the request for a connection; returns its length. It contains the password: wipe it. */
size_t upstream_write(const struct upstream *upstream, const struct proxy_target *target,
	char out[UPSTREAM_HEAD_SIZE]);

enum upstream_step {
	UPSTREAM_MORE,     // incomplete so far
	UPSTREAM_ANSWERED, // *out_used bytes are the answer; the host's own bytes follow
	UPSTREAM_WRONG,    // this is no answer of HTTP
};

/* Reads the proxy's answer, whose body, if any, is left. A status of 2xx is a yes. */
enum upstream_step upstream_read_answer(
	struct span input, size_t *out_used, unsigned *out_status) ATTR_NODISCARD;

#endif
