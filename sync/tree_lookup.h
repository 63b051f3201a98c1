/* SPDX-License-Identifier: MIT */
#ifndef SYNC_TREE_LOOKUP_H
#define SYNC_TREE_LOOKUP_H

#include "sync/tree_view.h"

/*
 * Looks up many paths of one tree. It keeps the folder of the last one, so that paths should come
 * folder by folder. For a single one there is graft_find.
 */
struct tree_lookup {
	struct store *store;
	git_oid tree;
	char *folder;          // owned; of which `view` is; NULL: none yet
	struct tree_view view; // empty where there is no such folder
	bool is_blocked;       // because a file stands at it, or above it
};

void tree_lookup_init(struct tree_lookup *lookup, struct store *store, const git_oid *tree);
void tree_lookup_finish(struct tree_lookup *lookup);

/*
 * What stands at a path; *out_entry NULL: nothing. Good until the next call. *out_blocked: a file
 * is where a folder above it would have to be. As tree_view_load fails.
 */
bool tree_lookup_find(struct tree_lookup *lookup, const char *path,
	const struct tree_view_entry **out_entry, bool *out_blocked,
	struct error *err) ATTR_NODISCARD;

#endif
