/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_MOUNTS_H
#define PROVIDERS_LOCAL_CELL_MOUNTS_H

#include <stdbool.h>

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
 * Both functions before mounts_enter are the first process's: it has all capabilities of the user
 * namespace and has forked nobody.
 */

/*
 * Makes the tree as the plan says. `sockets` are the paths that sockets_find gives. Returns a
 * descriptor of the tree's root, or -1.
 */
int mounts_build(
	const struct cell_plan *plan, struct span sockets, struct error *err) ATTR_NODISCARD;

/*
 * Shows a folder of this machine at its own path, writable, from now on. No link is followed, on
 * this machine or in the cell, since who is in the cell may have made some on the way.
 */
bool mounts_show(int root_fd, const char *path, struct error *err) ATTR_NODISCARD;

/* Attaches a mount at a path, made where it is missing; no link is followed. */
bool mounts_attach(int root_fd, int mount_fd, const char *path, struct error *err) ATTR_NODISCARD;

/* Whether a folder of this machine's is shown at its own path, writable. */
bool mounts_has(int root_fd, const char *path);

/* The calling process, a child of the first one, goes into the inner namespace, for good. */
bool mounts_enter(int root_fd, const struct cell_plan *plan, struct error *err) ATTR_NODISCARD;

#endif
