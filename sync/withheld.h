/* SPDX-License-Identifier: MIT */
#ifndef SYNC_WITHHELD_H
#define SYNC_WITHHELD_H

#include "sync/store.h"
#include "sync/stuck.h"

/*
 * The agent's files that stay in the sandbox, because git would run commands from them here:
 * folders that git takes for repositories (sync/git_layout.h), whose `config` and `hooks` name
 * commands (core.fsmonitor runs at `git status`). `.git` itself is in no tree.
 *
 * - A new folder that would be a repository here is withheld as a whole. - In a folder that was in
 * the base and is not a repository here, everything that would make it one is withheld. It might
 * come in several syncs, or complete ignored files that are already here. - In a folder that is
 * already a repository here, `config`, `config.worktree`, `commondir` and
 *   `hooks` are withheld. Everything else is synced as usual, and so is a deletion.
 * - If the local directory itself lies in a `.git`, or in such a part of a repository, everything
 *   is withheld.
 *
 * For the merge, withheld paths of the sandbox look as they are in the base. A delivery leaves them
 * in the sandbox as they are.
 */
struct withheld_request {
	const char *root;     // the local directory; its folders are checked too
	const git_oid *base;  // a tree
	const git_oid *local; // a tree of that directory: paths that match it are not withheld
};

/*
 * Whether git would run commands from a local file whose folders may not exist yet. `path` is
 * absolute and without symbolic links. Blocks.
 */
bool withheld_has(const char *path);

/*
 * The part of `runtime` that may come here; `paths` gets the withheld paths, with a reason.
 * ERROR_PROTOCOL as in tree_view_load; ERROR_SYSTEM.
 */
bool withheld_take(struct store *store, const struct withheld_request *request,
	const git_oid *runtime, struct stuck *paths, git_oid *out_tree,
	struct error *err) ATTR_NODISCARD;

/*
 * Adds the withheld paths to a tree: each path in which `full` differs from `part` (withheld_take
 * made `part` from `full`) gets the entry of `full`, or none. The user's own entries at these paths
 * stay only in the local directory.
 */
bool withheld_add(struct store *store, const git_oid *tree, const git_oid *part,
	const git_oid *full, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

#endif
