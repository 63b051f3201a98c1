/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_LOOKUP_H
#define PROVIDERS_LOCAL_NET_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "providers/address.h"
#include "providers/local/net/host_names.h"

/*
 * Finds the addresses of names as this machine does (getaddrinfo(3)), in a process of its own: that
 * reads answers of strangers and files of this machine, and the relaying process may open no file.
 * It says, too, which addresses are this machine's own. A packet is a request or an answer.
 */
enum { LOOKUP_ADDRESSES_MAX = 16, LOOKUP_THREADS = 16 };

struct lookup_request {
	uint32_t id;
	char name[NAME_SIZE]; // or an address
};

struct lookup_found {
	struct address address;
	uint8_t is_own; // a connection to it would not leave this machine
};

struct lookup_answer {
	uint32_t id;
	uint32_t count; // 0: it has none
	struct lookup_found found[LOOKUP_ADDRESSES_MAX];
};

/* False of what that process would not have written. */
bool lookup_read(struct span packet, struct lookup_answer *out) ATTR_NODISCARD;

/*
 * In a child of the relaying process that has one thread, and no descriptor but `fd` and the
 * standard ones. Confines it; ends with the other end of `fd`, and at once where it cannot be
 * confined.
 */
void lookup_run(int fd) ATTR_NORETURN;

#endif
