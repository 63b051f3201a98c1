/* SPDX-License-Identifier: MIT */
#ifndef BASE_USER_REPOSITORY_H
#define BASE_USER_REPOSITORY_H

#include <limits.h>
#include <stdbool.h>

#include "base/attr.h"

/*
 * Where the user's git repository around a directory has its files. Only ever read.
 * All paths are absolute and without a slash at the end.
 */
struct user_repository {
	char top[PATH_MAX];    // the work tree's root; the directory itself where there is none
	char folder[PATH_MAX]; // HEAD and index; "" where there is no repository
	char common[PATH_MAX]; // config and info/exclude: another one for a linked work tree
};

/*
 * The repository whose work tree root is `path`, or, where `path` itself has no
 * .git and `above` is set, the nearest above it that belongs to this user.
 * False where there is none; top is path then.
 */
bool user_repository_find(struct user_repository *repository, const char *path, bool above);

enum { REPOSITORY_PLACE_MAX = 1024 };

/*
 * Where the folder `path`, a real path, shall lie in a place of its own for git to find its
 * repository above it: the name of that repository's folder and the way down from there, as
 * "proj/services/api". "" where it is itself the top, where no repository is around it, or where
 * user_repository_is_place says no. Blocks.
 */
void user_repository_place(const char *path, char place[REPOSITORY_PLACE_MAX]);

/*
 * Whether a path is one of at least two names which no shell and no pattern of git's takes for
 * something else, and which do not begin with a dot.
 */
bool user_repository_is_place(const char *place);

#endif
