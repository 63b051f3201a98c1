/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SETTLED_H
#define SYNC_SETTLED_H

#include "sync/store.h"
#include "sync/stuck.h"

/*
 * What an apply has done, path by path. Where the merge is in the local directory, all that the
 * runtime had there is part of it: the base of that path is the runtime's version from then on.
 * Merged with the base before, the same change comes a second time: a merge of texts is not
 * idempotent.
 */
struct settled_trees {
	git_oid local, merged, runtime; // of the merge that was applied
	git_oid now; // the local directory after it; not looked at where `left` says it
};

/*
 * Makes of the tree *base what it is after that. `left` is what the apply has left as it is; NULL
 * where that is not known: then only what is as it was merged has been applied. As merge_run
 * fails.
 */
bool settled_base(struct store *store, const struct settled_trees *trees, struct stuck *left,
	git_oid *base, struct error *err) ATTR_NODISCARD;

#endif
