/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GRAFT_H
#define SYNC_GRAFT_H

#include "sync/tree_view.h"

/* One place in a tree: a file, a link or a whole folder. */
struct graft {
	unsigned mode; // enum entry_mode's, or TREE_VIEW_FOLDER
	git_oid id;
};

/* What stands at `path`, "" being the tree itself. ERROR_NOT_FOUND where nothing does. */
bool graft_find(struct store *store, const git_oid *tree, const char *path, struct graft *out,
	struct error *err) ATTR_NODISCARD;

/*
 * The tree with `graft` at `path` in place of whatever stands there; folders on the way
 * are made, and a file that is in their way gives way. ERROR_CONFIG for a path that no snapshot
 * holds (snapshot_path_is_safe).
 */
bool graft_set(struct store *store, const git_oid *tree, const char *path,
	const struct graft *graft, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/* The tree `into`, and at each place where it has nothing what `from` has there. */
bool graft_missing(struct store *store, const git_oid *from, const git_oid *into, git_oid *out_tree,
	struct error *err) ATTR_NODISCARD;

#endif
