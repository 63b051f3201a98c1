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
 * Reads what a program sends to a proxy before its own data: CONNECT of HTTP/1.1 (RFC 9110, section
 * 9.3.6), SOCKS 5 without a password (RFC 1928), or the head of a single request for an http:// URL
 * (RFC 9112, section 3.2.2). The first bytes tell them apart. The target is a name or an address.
 */
enum proxy_kind { PROXY_UNKNOWN, PROXY_CONNECT, PROXY_SOCKS, PROXY_REQUEST };

/* Zero-initialise. */
struct proxy {
	enum proxy_kind kind;
	bool has_greeted; // SOCKS: the method was negotiated
	/*
	 * PROXY_REQUEST, with its target: the head to send there instead of the one that was read,
	 * and the size of the body, which follows. It asks the server to close the connection.
	 */
	char *head; // owned
	size_t head_len;
	uint64_t body_len;
};

void proxy_finish(struct proxy *proxy);

struct proxy_target {
	bool is_address;
	struct address address;
	char name[NAME_SIZE]; // as from host_name_read; "" if the target is an address
	uint16_t port;        // not 0
};

enum proxy_step {
	PROXY_MORE,   // incomplete so far
	PROXY_ANSWER, // write *out_answer, then read on
	PROXY_TARGET, // the target is known; what follows is the program's own data
	PROXY_WRONG,  // write *out_answer, then close the connection
};

enum { PROXY_HEAD_MAX = 16384 };

/* *out_used bytes of `input` were read. The answer is static. */
enum proxy_step proxy_read(struct proxy *proxy, struct span input, size_t *out_used,
	struct proxy_target *out_target, struct span *out_answer) ATTR_NODISCARD;

/* The result of connecting to a target. */
enum proxy_end { PROXY_CONNECTED, PROXY_REFUSED, PROXY_NOT_FOUND, PROXY_UNREACHABLE };

/* The proxy's answer to the program; static. */
struct span proxy_answer(const struct proxy *proxy, enum proxy_end end);

#endif
