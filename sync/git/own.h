/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_OWN_H
#define SYNC_GIT_OWN_H

#include "base/attr.h"
#include "base/error.h"

/*
 * Whether a repository below the workspace's root is the workspace's own. A `.git` there may be a
 * file or a link to any repository of the user's, or a folder with links, a `commondir` or
 * alternates that lead to one; an unpacked archive can bring it. The sandbox would get a history
 * that nobody gave it.
 *
 * Its files, and those that they lead to, have to lie in the workspace; or where the repository
 * around it keeps its submodules; or in a repository that names this folder as its work tree, in
 * `worktrees/NAME/gitdir` or as `core.worktree`. The workspace's own `.git` may lead anywhere: the
 * user has opened that one.
 */
struct own_request {
	const char *workspace; // a real path
	const char *root;      // of the nested repository's work tree: a real path below it
	const char *folder;    // of its HEAD, and
	const char *common;    // of its objects, as libgit2 has found them
	const char *home;      // may be NULL
};

/* That it may look at so many files, folders and links. */
enum { OWN_ENTRIES_MAX = 1 << 18 };

/*
 * ERROR_UNAVAILABLE where it is not, with the path that lies elsewhere; ERROR_LIMIT where it has
 * too many files to tell. Blocks.
 */
bool own_check(const struct own_request *request, struct error *err) ATTR_NODISCARD;

#endif
