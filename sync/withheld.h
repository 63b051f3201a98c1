/* SPDX-License-Identifier: MIT */
#ifndef SYNC_WITHHELD_H
#define SYNC_WITHHELD_H

#include "sync/store.h"
#include "sync/stuck.h"

/*
 * What the agent has made in the sandbox and does not come here, because git would run commands
 * from it: folders that git takes for repositories (sync/git_layout.h), whose `config` and `hooks`
 * name commands (core.fsmonitor runs at `git status`). `.git` itself is in no tree.
 *
 * - A new folder that would be a repository here is withheld whole.
 * - In a folder that was in the base and is no repository here, what would make it one is
 *   withheld: it may come in several syncs, or complete what is here and ignored.
 * - In a repository that is here already, `config`, `config.worktree`, `commondir` and `hooks`
 *   are withheld; all else is in sync as ever, and so is a deletion.
 *
 * - Where the local directory itself lies in a `.git`, or in such a place of a repository,
 *   everything is withheld.
 *
 * Withheld paths are as in the base in what the merge sees of the sandbox, and as they are in what
 * is delivered to it.
 */
struct withheld_request {
	const char *root;     // the local directory; its folders are looked at, too
	const git_oid *base;  // a tree
	const git_oid *local; // a tree, of that directory: what is the same there is not withheld
};

/*
 * Whether git would run commands from a file here, of which the folders may not be there yet.
 * `path` is absolute and without links. Blocks.
 */
bool withheld_has(const char *path);

/*
 * The part of `runtime` that may come here; `paths` gets the withheld ones, with a reason.
 * ERROR_PROTOCOL as tree_view_load; ERROR_SYSTEM.
 */
bool withheld_take(struct store *store, const struct withheld_request *request,
	const git_oid *runtime, struct stuck *paths, git_oid *out_tree,
	struct error *err) ATTR_NODISCARD;

/*
 * The tree with what was withheld: each path in which `full` differs from `part`, which
 * withheld_take made of it, is what `full` has, or nothing. What the user has there stays here
 * alone.
 */
bool withheld_add(struct store *store, const git_oid *tree, const git_oid *part,
	const git_oid *full, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

#endif
