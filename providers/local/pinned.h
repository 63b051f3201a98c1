/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_PINNED_H
#define PROVIDERS_LOCAL_PINNED_H

#include "providers/local/cell/cell.h"
#include "providers/local/host.h"
#include "providers/local/owner.h"
#include "providers/local/pin_list.h"

/*
 * The roots of a confined agent that works in the workspaces themselves (isolation = none with
 * confine): each is shown in its cell, writable but for its pins (pin_list.h), and looked at later
 * for what has come. It knows no keys but allow-write and git-write.
 */
struct pinned {
	struct host_sandbox *host;
	struct cell *cell;      // borrowed; NULL: nothing is confined, and nothing pinned
	struct pin_rules rules; // borrowed, until pinned_finish
	char **refused;         // owned; folders that no root may contain, nor lie in one
	char **above;           // owned; folders that no root may contain
	const char *home_name;  // borrowed; HOME, which may lead through links
	char *home;             // owned; the same without
	bool writes_git;        // git-write
	struct owner owner;     // who works in the cell, where that is another user
	struct list jobs;       // of struct pin_job
	struct list roots;      // of struct pinned_root
	void (*tell)(void *data, const char *text); // what the user should know; may be NULL
	void *data;
};

/* `state` is the state folder, without links. The settings are not needed later. */
void pinned_init(struct pinned *pinned, struct host_sandbox *host, const struct settings *settings,
	const char *home_name, const char *state);
void pinned_finish(struct pinned *pinned);

/*
 * As sandbox_add_root. ERROR_CONFIG for a folder that would undo the confinement, for one that a
 * link leads to, which an agent may have made, and for one that is not the cell's user's.
 */
void pinned_add_root(struct pinned *pinned, const char *local_root, sandbox_done *done, void *data);

/* Tells what has come into the roots since, in its own time. */
void pinned_look(struct pinned *pinned);

/* Whether a path, without links, is pinned or lies in what is. */
bool pinned_has(const struct pinned *pinned, const char *path);

#endif
