/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_TARGET_H
#define PROVIDERS_LOCAL_NET_TARGET_H

#include <stdbool.h>

#include "base/attr.h"
#include "providers/local/net/host_names.h"
#include "providers/local/net/lookup.h"
#include "providers/local/net/proxy.h"
#include "providers/local/net/wire.h"

/* Where connections of a cell's programs go, and where none goes. Nothing here uses a socket. */

/* Whether a program at this address has found our proxy. */
bool target_is_gate(const struct proxy_target *target);

enum target_end {
	TARGET_SETTLED,
	TARGET_UNKNOWN, // an address of our DNS that stands for no name
	TARGET_REFUSED, // this machine, at a port of no service
};

/*
 * Takes what a program has named for what it means: an address of our DNS for the name that it was
 * given for, this machine for its service. Of TARGET_SETTLED *out_kind says what it is.
 */
enum target_end target_settle(const struct wire_start *start, const struct host_names *names,
	struct proxy_target *target, enum network_target *out_kind) ATTR_NODISCARD;

/*
 * Whether an address may be connected to, whatever its name is: whoever owns a name can give it any
 * address, also one that only this machine reaches.
 */
bool target_is_reached(const struct wire_start *start, const struct lookup_found *found);

#endif
