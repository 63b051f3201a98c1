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
#include "providers/local/request.h"

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
	 * and the body that follows. The head asks the server to close the connection.
	 */
	char *head; // owned
	size_t head_len;
	struct request_body body;
};

void proxy_finish(struct proxy *proxy);

struct proxy_target {
	bool is_address;
	struct address address;
	char name[NAME_SIZE]; // as from host_name_read; "" if the target is an address
	uint16_t port;        // not 0
};

/* Reads "host:port" or "[2001:db8::1]:port"; `port`, if not 0, is for a text without a port. */
bool proxy_read_authority(struct proxy_target *out, struct span text, uint16_t port) ATTR_NODISCARD;

/* The name, or the address as address_print writes it. */
void proxy_print_host(const struct proxy_target *target, char out[NAME_SIZE]);

/* Whether the target is "localhost", an address of 127.0.0.0/8, or ::1. */
bool proxy_target_is_loopback(const struct proxy_target *target);

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
