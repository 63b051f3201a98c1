/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_TREE_WALK_H
#define SYNC_GIT_TREE_WALK_H

#include <limits.h>

#include "sync/id.h"
#include "sync/store.h"

/* Shared by code that walks through trees. */
enum { TREE_DEPTH_MAX = 256 };

/* ERROR_LIMIT below TREE_DEPTH_MAX. The caller frees the tree. */
bool tree_open(struct store *store, const git_oid *id, size_t depth, git_tree **out_tree,
	struct error *err) ATTR_NODISCARD;

/* Appends a name to a path of PATH_MAX bytes; ERROR_LIMIT if there is no room. */
bool tree_path_push(char path[PATH_MAX], const char *name, struct error *err) ATTR_NODISCARD;

#endif
