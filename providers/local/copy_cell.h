/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_CELL_H
#define PROVIDERS_LOCAL_COPY_CELL_H

#include "base/settings.h"
#include "providers/local/agent_home.h"
#include "providers/local/cell/cell.h"
#include "providers/local/cell_ways.h"
#include "providers/network.h"
#include "providers/provider.h"

/*
 * The cell in which the processes of a copy run: translates the keys of a profile into a cell. The
 * copies themselves become visible when roots are added (cell_show).
 */
enum confinement { CONFINEMENT_NO, CONFINEMENT_YES, CONFINEMENT_REQUIRED };
extern const char *const confinement_choices[]; // in that order, NULL-terminated
enum confinement copy_confinement(const struct settings *settings);

/* Whether the agent works in a copy. A confined agent does, unless the profile says otherwise. */
bool copy_is_wanted(const struct settings *settings);

/* Whether each session has a copy of its own: copy-per = session. */
bool copy_is_per_session(const struct settings *settings);

/* Whether nothing may start unconfined; the network or keys of a profile can require that, too. */
bool copy_cell_is_required(const struct settings *settings);

/* Whether a confined sandbox of the profile has this machine's network. */
bool copy_cell_has_network(const struct settings *settings);

/* Which of its network keys a sandbox of the profile enforces. */
struct network_abilities copy_cell_network(const struct settings *settings);

extern const struct error_reason copy_cell_reason;

/*
 * The user's home, which is also the sandbox's home; borrowed. NULL: HOME is not set to a folder.
 */
const char *copy_cell_home(const struct provider_context *context);

/*
 * If the broker is root, sets the variables that name the user to the user who works in the cell.
 */
void copy_cell_name_user(const struct provider_context *context, char ***environment);

struct copy_cell_config {
	const struct provider_context *context;
	const struct settings *settings;
	const char *state;               // the state folder, without links
	const struct agent_home *agent;  // the files in its home
	const struct cell_ways *ways;    // ways out of the cell
	const struct limit_group *group; // group for processes with limits, if it is open
	struct sandbox *sandbox;         // receives warnings
	const struct owner *owner;       // user who works in the cell
};

/* The configuration is borrowed until this returns. */
struct cell *copy_cell_create(const struct copy_cell_config *config,
	const struct cell_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/*
 * Whether this variable names something that a cell lacks: a socket of this machine, or a folder
 * for sockets.
 */
bool copy_cell_lacks(struct span name);

/* Whether the environment in a cell, or in any copy, lacks this variable (host_drop_variables). */
bool copy_cell_hides(
	const struct provider_context *context, const struct settings *settings, struct span name);
bool copy_cell_hides_anyway(
	const struct provider_context *context, const struct settings *settings, struct span name);

#endif
