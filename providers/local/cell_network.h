/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_NETWORK_H
#define PROVIDERS_LOCAL_CELL_NETWORK_H

#include "base/settings.h"
#include "providers/local/cell/cell.h"
#include "providers/network.h"
#include "providers/provider.h"

/*
 * The network of a sandbox's cell with `network = allow`: it decides about each connection by the
 * profile's lists, and says what became of it. Nothing reaches the network without it, also where
 * it cannot start, or has ended.
 */
struct cell_network;

struct cell_network_listener {
	void (*on_ready)(void *data);
	/* Once, instead of on_ready: nothing in the cell will reach the network. */
	void (*on_failed)(void *data, const struct error *err);
	/* For the user, once it is ready: what is refused, and what has ended. */
	void (*on_notice)(void *data, const char *text);
	void (*on_connection)(void *data, const struct sandbox_connection *connection);
};

/* Whether the profile says `network = allow`. */
bool cell_network_is_wanted(const struct settings *settings);

/* What such a profile's cell has besides; nothing where it is not wanted. */
void cell_network_plan(const struct settings *settings, struct cell_plan *plan);

/*
 * The variables of proxies: those of this machine name what the cell does not reach. Nothing where
 * it is not wanted.
 */
void cell_network_set_variables(const struct settings *settings, char ***environment);

/*
 * The cell is ready and has its ports still; it and the settings are borrowed until this returns.
 * Nothing is raised before.
 */
struct cell_network *cell_network_start(const struct provider_context *context,
	const struct settings *settings, struct cell *cell,
	const struct cell_network_listener *listener, void *data, struct error *err) ATTR_NODISCARD;
void cell_network_stop(struct cell_network *self); // NULL is fine

#endif
