/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_CELL_H
#define PROVIDERS_LOCAL_COPY_CELL_H

#include "base/settings.h"
#include "providers/local/agent_home.h"
#include "providers/local/cell/cell.h"
#include "providers/network.h"
#include "providers/provider.h"

/*
 * The cell in which the processes of a copy run: what a profile's keys mean for it. The copies
 * themselves are shown once there are roots (cell_show).
 */
enum confinement { CONFINEMENT_NO, CONFINEMENT_YES, CONFINEMENT_REQUIRED };
extern const char *const confinement_choices[]; // in that order, NULL-terminated
enum confinement copy_confinement(const struct settings *settings);

/* Whether the agent works in a copy: who is confined does, unless the profile says otherwise. */
bool copy_is_wanted(const struct settings *settings);

/* Whether nothing may start unconfined: also where its network has to be limited. */
bool copy_cell_is_required(const struct settings *settings);

/* Whether a confined sandbox of the profile has this machine's network. */
bool copy_cell_has_network(const struct settings *settings);

/* What a sandbox of the profile enforces of its network keys. */
struct network_abilities copy_cell_network(const struct settings *settings);

extern const struct error_reason copy_cell_reason;

/* The user's home, which is the sandbox's as well; borrowed. NULL: HOME names none. */
const char *copy_cell_home(const struct provider_context *context);

/* Variables have the name of who works in the cell, where the broker is root. */
void copy_cell_name_user(const struct provider_context *context, char ***environment);

struct copy_cell_config {
	const struct provider_context *context;
	const struct settings *settings;
	const char *state;               // the state folder, without links
	const struct agent_home *agent;  // what is in its home
	const struct limit_group *group; // where processes with limits go, if it is open
	struct sandbox *sandbox;         // gets warnings
	const struct owner *owner;       // who works in it
};

/* The configuration is borrowed until this returns. */
struct cell *copy_cell_create(const struct copy_cell_config *config,
	const struct cell_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* A variable that names what is not in a cell: a socket of this machine, or a folder for one. */
bool copy_cell_lacks(struct span name);

#endif
