/* SPDX-License-Identifier: MIT */
#ifndef SYNC_TREE_LOOKUP_H
#define SYNC_TREE_LOOKUP_H

#include "sync/tree_view.h"

/*
 * Looks up many paths in one tree. It keeps the folder of the last path, so that paths should come
 * folder by folder. For a single path use graft_find.
 */
struct tree_lookup {
	struct store *store;
	git_oid tree;
	char *folder;          // owned; the folder that `view` shows; NULL: none yet
	struct tree_view view; // empty if there is no such folder
	bool is_blocked;       // because a file is at it, or above it
};

void tree_lookup_init(struct tree_lookup *lookup, struct store *store, const git_oid *tree);
void tree_lookup_finish(struct tree_lookup *lookup);

/*
 * Looks up a path. *out_entry is valid until the next call; NULL: there is no entry. *out_blocked:
 * there is a file where a folder above the path would have to be. Fails like tree_view_load.
 */
bool tree_lookup_find(struct tree_lookup *lookup, const char *path,
	const struct tree_view_entry **out_entry, bool *out_blocked,
	struct error *err) ATTR_NODISCARD;

#endif
