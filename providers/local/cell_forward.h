/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_FORWARD_H
#define PROVIDERS_LOCAL_CELL_FORWARD_H

#include "base/settings.h"
#include "providers/local/cell/cell.h"
#include "providers/local/cell_network.h"

/*
 * The ports of this machine that lead into a sandbox's cell: `forward` in a profile. The broker
 * opens the listening sockets, and then passes them to the process that forwards (net/forward.h).
 */
struct cell_forward;

/* Checks the profile's `forward` lines. Fails with ERROR_CONFIG; succeeds if there are none. */
bool cell_forward_check(const struct settings *settings, struct error *err) ATTR_NODISCARD;

/* Adds the ports inside to the plan, if the profile forwards any. */
void cell_forward_plan(const struct settings *settings, struct cell_plan *plan);

/* Like cell_network_serve, for a profile with `forward` lines. */
struct cell_forward *cell_forward_start(
	const struct cell_network_config *config, struct error *err) ATTR_NODISCARD;
void cell_forward_stop(struct cell_forward *self); // NULL is fine; closes the ports

#endif
