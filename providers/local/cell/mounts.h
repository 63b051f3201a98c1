/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_MOUNTS_H
#define PROVIDERS_LOCAL_CELL_MOUNTS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"
#include "providers/local/cell/plan.h"

/*
 * The files of a cell. There are two mount namespaces: the outer one, in which the cell's first
 * process stays, has this machine's tree and, on top of its root, the cell's own; the inner one,
 * of everybody else, has the cell's own alone. What the first process mounts in the cell's tree
 * appears in the inner one (MS_SLAVE); nobody in the inner one may mount or unmount there.
 *
 * All functions before mounts_enter are for a process that has all capabilities of the user
 * namespace. If the broker is root, the first process still is root outside, where it has no
 * capability: it reaches root's folders by their permissions alone, and can make no file in the
 * cell, whose user namespace does not know root. It takes what the cell needs. A child of it that
 * has become the plan's user makes the rest.
 */
struct mounts_folder {
	char *said;
	char *real;       // without links
	const char *name; // of a socket in it
	struct stat status;
};

struct mounts_taken {
	int root_fd;                   // of the tree
	int sources[CELL_ENTRIES_MAX]; // of the plan's entries; -1: not taken
	struct mounts_folder *folders; // that hold sockets
	size_t folder_count;
};

/*
 * As the process that made the namespaces. `sockets` are the paths that sockets_find gives; they
 * are borrowed. Where the plan's user can reach all that it shows, no sources need be taken. The
 * processes that do this end; nothing is to be freed.
 */
bool mounts_take(struct mounts_taken *taken, const struct cell_plan *plan, struct span sockets,
	bool takes_sources, struct error *err) ATTR_NODISCARD;

/* As the plan's user: makes the tree as the plan says. */
bool mounts_build(const struct mounts_taken *taken, const struct cell_plan *plan,
	struct error *err) ATTR_NODISCARD;

/*
 * Shows a folder of this machine at its own path, writable, from now on. No link is followed, on
 * this machine or in the cell, since who is in the cell may have made some on the way. `taken` is
 * mounts_take_folder's: what the first process can reach; -1 where it cannot, or needs not.
 */
int mounts_take_folder(const char *path);
bool mounts_show(int root_fd, int taken, const char *path, struct error *err) ATTR_NODISCARD;

/* Attaches a mount at a path, made where it is missing; no link is followed. */
bool mounts_attach(int root_fd, int mount_fd, const char *path, struct error *err) ATTR_NODISCARD;

/* Whether a folder of this machine's is shown at its own path, writable. */
bool mounts_has(int root_fd, const char *path);

/* The calling process, a child of the first one, goes into the inner namespace, for good. */
bool mounts_enter(int root_fd, const struct cell_plan *plan, struct error *err) ATTR_NODISCARD;

#endif
