/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GRAFT_H
#define SYNC_GRAFT_H

#include "sync/tree_view.h"

/* One place in a tree: a file, a link or a whole folder. */
struct graft {
	unsigned mode; // enum entry_mode's, or TREE_VIEW_FOLDER
	git_oid id;
};

/* Reads the entry at `path`; "" is the tree itself. ERROR_NOT_FOUND if there is none. */
bool graft_find(struct store *store, const git_oid *tree, const char *path, struct graft *out,
	struct error *err) ATTR_NODISCARD;

/*
 * The tree with `graft` at `path`, replacing the old entry. Missing folders on the way are made; a
 * file in their way is replaced. ERROR_CONFIG for a path that no snapshot may contain
 * (snapshot_path_is_safe).
 */
bool graft_set(struct store *store, const git_oid *tree, const char *path,
	const struct graft *graft, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/* The tree `into`, with the entries of `from` at each path that `into` does not have. */
bool graft_missing(struct store *store, const git_oid *from, const git_oid *into, git_oid *out_tree,
	struct error *err) ATTR_NODISCARD;

#endif
