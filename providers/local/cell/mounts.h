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
 * The files of a cell. There are two mount namespaces. The cell's first process stays in the outer
 * one, which has this machine's tree and, mounted over its root, the cell's tree. All other
 * processes are in the inner one, which has only the cell's tree. Mounts that the first process
 * makes in the cell's tree appear in the inner namespace (MS_SLAVE); no process there may mount or
 * unmount in it.
 *
 * All functions before mounts_enter are for a process with all capabilities of the user namespace.
 * If the broker is root, the first process is still root outside, where it has no capability: it
 * can reach root's folders only by their permissions, and it cannot make a file in the cell,
 * because the cell's user namespace does not know root. So it opens what the cell needs, and a
 * child that has become the plan's user makes the rest.
 */
struct mounts_folder {
	char *said;
	char *real;       // without links
	const char *name; // of a socket in this folder
	struct stat status;
};

struct mounts_taken {
	int root_fd;                   // of the cell's tree
	int sources[CELL_ENTRIES_MAX]; // of the plan's entries; -1: not opened
	struct mounts_folder *folders; // folders that contain sockets
	size_t folder_count;
};

/*
 * Opens what the cell needs; call it in the process that made the namespaces. `sockets` are the
 * paths from sockets_find, borrowed. Sources need not be opened if the plan's user can reach
 * everything that the plan shows. Nothing needs to be freed, because the callers end.
 */
bool mounts_take(struct mounts_taken *taken, const struct cell_plan *plan, struct span sockets,
	bool takes_sources, struct error *err) ATTR_NODISCARD;

/* Makes the tree that the plan describes. Call it as the plan's user. */
bool mounts_build(const struct mounts_taken *taken, const struct cell_plan *plan,
	struct error *err) ATTR_NODISCARD;

/*
 * Shows a folder of this machine at its own path, writable. Follows no link, on this machine or in
 * the cell, because a process in the cell may have made one. `taken` is the descriptor from
 * mounts_take_folder, or -1 if the first process cannot or need not open the folder.
 */
int mounts_take_folder(const char *path);
bool mounts_show(int root_fd, int taken, const char *path, struct error *err) ATTR_NODISCARD;

/* Attaches a mount at a path, which is made if it is missing; follows no link. */
bool mounts_attach(int root_fd, int mount_fd, const char *path, struct error *err) ATTR_NODISCARD;

/* Whether a folder of this machine is shown at its own path, writable. */
bool mounts_has(int root_fd, const char *path);

/* Moves the calling process, a child of the first one, into the inner namespace for good. */
bool mounts_enter(int root_fd, const struct cell_plan *plan, struct error *err) ATTR_NODISCARD;

#endif
