/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_PROXY_H
#define PROVIDERS_LOCAL_NET_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "providers/address.h"
#include "providers/local/net/host_names.h"

/*
 * What a program says to a proxy before its own bytes: CONNECT of HTTP/1.1 (RFC 9110, section
 * 9.3.6) or SOCKS 5 without a password (RFC 1928), told apart by the first byte. Where it wants to
 * go is a name or an address.
 */
enum proxy_kind { PROXY_UNKNOWN, PROXY_CONNECT, PROXY_SOCKS };

struct proxy {
	enum proxy_kind kind;
	bool has_greeted; // SOCKS: the methods were agreed
};

struct proxy_target {
	bool is_address;
	struct address address;
	char name[NAME_SIZE]; // host_name_read; "" where it is an address
	uint16_t port;        // not 0
};

enum proxy_step {
	PROXY_MORE,   // not whole so far
	PROXY_ANSWER, // *out_answer is to be written; then what follows is to be read
	PROXY_TARGET, // what follows is the program's own
	PROXY_WRONG,  // *out_answer is to be written, and the connection closed
};

enum { PROXY_HEAD_MAX = 8192 };

/* What was used of `input` is *out_used; the answer is static. */
enum proxy_step proxy_read(struct proxy *proxy, struct span input, size_t *out_used,
	struct proxy_target *out_target, struct span *out_answer) ATTR_NODISCARD;

/* How a target's connection has ended. */
enum proxy_end { PROXY_CONNECTED, PROXY_REFUSED, PROXY_NOT_FOUND, PROXY_UNREACHABLE };

/* What the program is told then; static. */
struct span proxy_answer(const struct proxy *proxy, enum proxy_end end);

#endif
