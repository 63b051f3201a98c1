/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_PINNED_H
#define PROVIDERS_LOCAL_PINNED_H

#include "providers/local/cell/cell.h"
#include "providers/local/host.h"
#include "providers/local/owner.h"
#include "providers/local/pin_list.h"
#include "providers/local/pin_place.h"

/*
 * The roots of a confined agent that works in the workspaces themselves (isolation = none with
 * confine). The cell shows each root; it is writable except for its pins (pin_list.h). pinned_look
 * later reports new files that would need a pin. Knows no keys except allow-write and git-write.
 */
struct pinned {
	struct host_sandbox *host;
	struct cell *cell;      // borrowed; NULL: not confined, no pins
	struct pin_rules rules; // borrowed, until pinned_finish
	struct pin_places places;
	bool writes_git;    // git-write
	struct owner owner; // user who works in the cell, if it is another user
	struct list jobs;   // of struct pin_job
	struct list roots;  // of struct pinned_root
	void (*tell)(void *data, const char *text); // receives sentences for the user; may be NULL
	void *data;
};

/* `state` is the state folder, without links. The settings are only needed during the call. */
void pinned_init(struct pinned *pinned, struct host_sandbox *host, const struct settings *settings,
	const char *home_name, const char *state);
void pinned_finish(struct pinned *pinned);

/*
 * Implements sandbox_add_root. ERROR_CONFIG for a folder that would undo the confinement, for a
 * folder behind a link (an agent may have made the link), and for a folder that does not belong to
 * the cell's user.
 */
void pinned_add_root(struct pinned *pinned, const char *local_root, sandbox_done *done, void *data);

/* Looks for new files in the roots that would need a pin, and reports them later. */
void pinned_look(struct pinned *pinned);

/* Whether a path is pinned or lies in a pinned folder. The path must contain no links. */
bool pinned_has(const struct pinned *pinned, const char *path);

#endif
