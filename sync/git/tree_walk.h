/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_TREE_WALK_H
#define SYNC_GIT_TREE_WALK_H

#include <limits.h>
#include <string.h>

#include "sync/store.h"

/* What walks through trees shares. */
enum { TREE_DEPTH_MAX = 256 };

static inline bool git_oid_is_same(const git_oid *a, const git_oid *b)
{
	return memcmp(a->id, b->id, GIT_OID_RAWSZ) == 0;
}

/* ERROR_LIMIT below TREE_DEPTH_MAX. The caller frees it. */
bool tree_open(struct store *store, const git_oid *id, size_t depth, git_tree **out_tree,
	struct error *err) ATTR_NODISCARD;

/* Adds a name to a path of PATH_MAX bytes; ERROR_LIMIT where it has no room. */
bool tree_path_push(char path[PATH_MAX], const char *name, struct error *err) ATTR_NODISCARD;

#endif
