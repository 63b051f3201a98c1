/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_WAYS_H
#define PROVIDERS_LOCAL_CELL_WAYS_H

#include "providers/local/cell_forward.h"
#include "providers/local/cell_keys.h"
#include "providers/local/cell_network.h"

/* The ways out of a sandbox's cell that our own processes serve: its network and its keys. */
struct cell_ways {
	struct cell_forward *forward; // NULL: no ports lead into it
	struct cell_network *network; // NULL: the cell has none
	struct cell_keys *keys;       // NULL: the cell has none
	const struct settings *settings;
	struct cell_network_config config; // for the start
};

/*
 * Borrows the context, and the settings until the cell is ready. `ways` must be zeroed. Fails with
 * ERROR_CONFIG.
 */
bool cell_ways_init(struct cell_ways *ways, const struct provider_context *context,
	const struct settings *settings, struct error *err) ATTR_NODISCARD;
void cell_ways_finish(struct cell_ways *ways); // fine for zeroed memory, and twice

/* Adds to the plan what they need. */
void cell_ways_plan(const struct cell_ways *ways, struct cell_plan *plan);

/* Call this before the start: removes variables that the cell must not have, and sets its proxy. */
void cell_ways_set_variables(
	const struct cell_ways *ways, char ***environment, struct sandbox *sandbox);

/*
 * Starts what can start while the cell is being made. The configuration has no cell yet; it is kept
 * for cell_ways_start.
 */
bool cell_ways_prepare(struct cell_ways *ways, const struct cell_network_config *config,
	struct error *err) ATTR_NODISCARD;

/*
 * Starts them one after the other, when the cell is ready. Raises on_ready once, when the last one
 * is ready, or at once if there are none. Then call cell_keys_set_variables.
 */
void cell_ways_start(struct cell_ways *ways, struct cell *cell);

#endif
