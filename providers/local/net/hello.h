/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_HELLO_H
#define PROVIDERS_LOCAL_NET_HELLO_H

#include "base/attr.h"
#include "base/span.h"
#include "providers/local/net/host_names.h"

/*
 * The server name that a program says in the first record of TLS (RFC 8446, section 4.1.2; RFC
 * 6066, section 3). For the audit alone: nothing is decided by it.
 */
enum hello_step {
	HELLO_MORE, // what is there may become one
	HELLO_NONE, // it is not TLS, or names nobody, or is in pieces
	HELLO_NAME, // `out` has it, as host_name_read writes it
};

enum { HELLO_MAX = 5 + (16 << 10) }; // more is never needed

/* `input` is all that the program has said so far. */
enum hello_step hello_read(struct span input, char out[NAME_SIZE]) ATTR_NODISCARD;

#endif
