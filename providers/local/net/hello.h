/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_HELLO_H
#define PROVIDERS_LOCAL_NET_HELLO_H

#include "base/attr.h"
#include "base/span.h"
#include "providers/local/net/host_names.h"

/*
 * Reads the server name in the first TLS record of a program (RFC 8446, section 4.1.2; RFC 6066,
 * section 3). The broker only writes the name to the audit log, and bases no decision on it.
 */
enum hello_step {
	HELLO_MORE, // incomplete so far
	HELLO_NONE, // it is not TLS, has no name, or is fragmented
	HELLO_NAME, // `out` has the name, in the form of host_name_read
};

enum { HELLO_MAX = 5 + (16 << 10) }; // hello_read never needs more bytes than this

/* `input` is everything that the program has sent so far. */
enum hello_step hello_read(struct span input, char out[NAME_SIZE]) ATTR_NODISCARD;

#endif
