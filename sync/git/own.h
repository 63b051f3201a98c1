/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_OWN_H
#define SYNC_GIT_OWN_H

#include "base/attr.h"
#include "base/error.h"

/*
 * Checks that a repository below the workspace's root is the workspace's own. A `.git` there may be
 * a file or a link to any repository of the user. It may also be a folder with links, a `commondir`
 * or alternates that lead to one; an unpacked archive can bring that. Then the sandbox would get a
 * history that the user did not mean to share.
 *
 * All files of the repository, and those that they lead to, must lie in one of these places: in the
 * workspace; where the repository around it keeps its submodules; or in a repository that names
 * this folder as its work tree, in `worktrees/NAME/gitdir` or as `core.worktree`. The workspace's
 * own `.git` may lead anywhere, because the user has opened it.
 */
struct own_request {
	const char *workspace; // a real path
	const char *root;      // the nested repository's work tree: a real path below `workspace`
	const char *folder;    // has its HEAD, and
	const char *common;    // has its objects, as libgit2 found them
	const char *home;      // may be NULL
};

/* The maximum of files, folders and links to check. */
enum { OWN_ENTRIES_MAX = 1 << 18 };

/*
 * ERROR_UNAVAILABLE if it is not the workspace's own, with the path that lies elsewhere;
 * ERROR_LIMIT if it has too many files to check. Blocks.
 */
bool own_check(const struct own_request *request, struct error *err) ATTR_NODISCARD;

#endif
