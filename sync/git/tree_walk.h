/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_TREE_WALK_H
#define SYNC_GIT_TREE_WALK_H

#include <limits.h>

#include "sync/id.h"
#include "sync/store.h"

/* What walks through trees shares. */
enum { TREE_DEPTH_MAX = 256 };

/* ERROR_LIMIT below TREE_DEPTH_MAX. The caller frees it. */
bool tree_open(struct store *store, const git_oid *id, size_t depth, git_tree **out_tree,
	struct error *err) ATTR_NODISCARD;

/* Adds a name to a path of PATH_MAX bytes; ERROR_LIMIT where it has no room. */
bool tree_path_push(char path[PATH_MAX], const char *name, struct error *err) ATTR_NODISCARD;

#endif
