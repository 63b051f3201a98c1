/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_NETWORK_H
#define PROVIDERS_LOCAL_CELL_NETWORK_H

#include "base/settings.h"
#include "providers/local/cell/cell.h"
#include "providers/network.h"
#include "providers/provider.h"

/*
 * The network of a sandbox's cell with `network = allow` or `network = ask`. It decides about each
 * connection by the profile's lists. With `ask`, it raises a wish about every other connection and
 * reports the outcome. The cell has no other way to the network, even if this fails to start or has
 * ended.
 */
struct cell_network;

struct cell_network_config {
	const struct provider_context *context;
	const struct settings *settings;
	uid_t uid;         // the cell's user
	gid_t gid;         // its group
	struct cell *cell; // ready, and still has its ports; NULL for cell_network_create
	void (*on_ready)(void *data);
	void *data;
	/*
	 * Either on_failed is raised once: the cell stays without a network. Or on_ready is raised,
	 * and from then on on_notice, on_connection, and the two callbacks of a wish.
	 */
	const struct sandbox_listener *listener;
	void *listener_data;
};

/* Whether the profile says `network = allow` or `network = ask`. */
bool cell_network_is_wanted(const struct settings *settings);

/* Adds to the plan what the network needs; nothing if the profile does not ask for it. */
void cell_network_plan(const struct settings *settings, struct cell_plan *plan);

/*
 * Sets the variables that name proxies. The proxies of this machine cannot be reached from the
 * cell, and their variables may have a password, so they are removed, also with `network =
 * blocked`. Does nothing if the cell has this machine's network.
 */
void cell_network_set_variables(const struct settings *settings, char ***environment);

/*
 * Starts the network's process, while the cell is being made. The configuration is borrowed until
 * this returns. Raises nothing before cell_network_serve.
 */
struct cell_network *cell_network_create(
	const struct cell_network_config *config, struct error *err) ATTR_NODISCARD;

/*
 * Gives the process the sockets of the cell, which is ready; call it once. Fails if the process
 * could not start, or could not be asked. Raises nothing before it returns.
 */
bool cell_network_serve(
	struct cell_network *self, struct cell *cell, struct error *err) ATTR_NODISCARD;
void cell_network_stop(struct cell_network *self); // NULL is fine

/* Implement sandbox_decide and sandbox_look_for_program. NULL is fine. */
void cell_network_decide(
	struct cell_network *self, uint32_t id, const struct sandbox_verdict *verdict);
void cell_network_look_for_program(struct cell_network *self, uint32_t id);

#endif
