/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SETTLED_H
#define SYNC_SETTLED_H

#include "sync/store.h"
#include "sync/stuck.h"

/*
 * Finds what an apply has done, path by path. If the local directory has the merge of a path, the
 * runtime's changes are part of it. So the path's base must become the runtime's version: merged
 * with the old base, the same change would be applied twice, because merging texts is not
 * idempotent.
 */
struct settled_trees {
	git_oid local, merged, runtime; // in the merge that was applied
	git_oid now; // the local directory afterwards; not used for paths in `left`
};

/*
 * Changes the tree *base accordingly. `left` has the paths that the apply left unchanged; if it is
 * NULL, they are unknown, and only paths that match the merge count as applied. Fails like
 * merge_run.
 */
bool settled_base(struct store *store, const struct settled_trees *trees, struct stuck *left,
	git_oid *base, struct error *err) ATTR_NODISCARD;

#endif
