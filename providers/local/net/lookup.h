/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_LOOKUP_H
#define PROVIDERS_LOCAL_NET_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"
#include "providers/address.h"
#include "providers/local/net/host_names.h"

/*
 * Resolves names as this machine does (getaddrinfo(3)), in a separate process. This process reads
 * strangers' answers and this machine's files, and the relaying process may not open files. It also
 * determines which addresses belong to this machine. Each packet is one request or answer.
 */
enum { LOOKUP_ADDRESSES_MAX = 16, LOOKUP_AVOID_MAX = 6, LOOKUP_THREADS = 16 };

struct lookup_request {
	uint32_t id;
	char name[NAME_SIZE]; // or an address
	/*
	 * Names or addresses of hosts to which a connection must not lead; "": none. The first
	 * LOOKUP_ADDRESSES_MAX addresses of each count.
	 */
	char avoid[LOOKUP_AVOID_MAX][NAME_SIZE];
};

/*
 * The number of bytes to send: without the end of `avoid` that is not used. Many requests may wait
 * in the socket's buffer.
 */
size_t lookup_request_size(const struct lookup_request *request);

struct lookup_found {
	struct address address;
	uint8_t is_own;     // a connection to this address would not leave this machine
	uint8_t is_avoided; // it is, or may be, an address of lookup_request.avoid
};

struct lookup_answer {
	uint32_t id;
	uint32_t count; // 0: no address
	struct lookup_found found[LOOKUP_ADDRESSES_MAX];
};

/* False if our program never writes such a packet. */
bool lookup_read(struct span packet, struct lookup_answer *out) ATTR_NODISCARD;

/*
 * Forks the process, which ends with its parent; the parent must have one thread. Returns the
 * socket to it, or -1. The process first overwrites its copy of `secret`, which may be NULL.
 */
int lookup_start(void *secret, size_t size, struct error *err) ATTR_NODISCARD;

/*
 * The main function of that process, which has no descriptors except `fd` and the standard ones. It
 * confines itself, and ends when the other end of `fd` is closed, or at once if it cannot be
 * confined.
 */
void lookup_run(int fd) ATTR_NORETURN;

#endif
