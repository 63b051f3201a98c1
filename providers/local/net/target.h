/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_TARGET_H
#define PROVIDERS_LOCAL_NET_TARGET_H

#include <stdbool.h>

#include "base/attr.h"
#include "providers/local/net/host_names.h"
#include "providers/local/net/lookup.h"
#include "providers/local/net/proxy.h"
#include "providers/local/net/wire.h"

/* Decides where connections of a cell's programs go, and which go nowhere. Uses no socket. */

/*
 * Whether our proxy takes the connection: it goes to its address, or to the proxy of this machine.
 * So programs whose own configuration names that proxy work, and cannot go around our decisions.
 */
bool target_is_gate(const struct wire_start *start, const struct host_names *names,
	const struct proxy_target *target);

enum target_end {
	TARGET_SETTLED,
	TARGET_UNKNOWN, // an address of our DNS that belongs to no name
	TARGET_REFUSED, // this machine, but not the port of a service; or this machine's proxy
};

/*
 * Translates the target that a program gave: an address of our DNS into the name that has it, an
 * address of this machine into its service. If it returns TARGET_SETTLED, *out_kind is the kind of
 * target.
 */
enum target_end target_settle(const struct wire_start *start, const struct host_names *names,
	struct proxy_target *target, enum network_target *out_kind) ATTR_NODISCARD;

/* Whether the name is below "localhost", so that it must not reach a proxy, which may resolve it.
 */
bool target_is_local_name(const struct proxy_target *target);

/*
 * Whether connecting to an address is allowed, whatever its name is. The name proves nothing,
 * because its owner can give it any address, even one that only this machine can reach.
 */
bool target_is_reached(const struct wire_start *start, const struct lookup_found *found);

/*
 * Whether a proxy on this machine may be asked for a name that has these addresses here. The proxy
 * may connect to any of them, from this machine. A name without addresses may be known to it alone.
 */
bool target_may_be_asked_for(const struct wire_start *start, const struct lookup_answer *answer);

#endif
