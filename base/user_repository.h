/* SPDX-License-Identifier: MIT */
#ifndef BASE_USER_REPOSITORY_H
#define BASE_USER_REPOSITORY_H

#include <limits.h>
#include <stdbool.h>

#include "base/attr.h"

/*
 * Where the user's git repository around a directory has its files. The broker only reads them. All
 * paths are absolute and have no slash at the end.
 */
struct user_repository {
	char top[PATH_MAX];    // the work tree's root; the directory itself if there is none
	char folder[PATH_MAX]; // has HEAD and index; "" if there is no repository
	char common[PATH_MAX]; // has config and info/exclude; differs from folder for a linked work
	                       // tree
};

/*
 * Finds the repository whose work tree root is `path`. If `path` itself has no .git and `above` is
 * set, finds the nearest one above it that belongs to this user. False if there is none; top is
 * then `path`.
 */
bool user_repository_find(struct user_repository *repository, const char *path, bool above);

enum { REPOSITORY_PLACE_MAX = 1024 };

/*
 * Where to put the folder `path` (a real path) in its own sandbox, so that git finds the repository
 * in a folder above it. The result is the name of the repository's folder and the path down from
 * there, such as "proj/services/api". It is "" if the folder is the repository's top itself, if it
 * is in no repository, or if user_repository_is_place refuses the result. Blocks.
 */
void user_repository_place(const char *path, char place[REPOSITORY_PLACE_MAX]);

/*
 * Whether a path has at least two names, none begins with a dot, and no shell and no git pattern
 * gives their characters a special meaning.
 */
bool user_repository_is_place(const char *place);

#endif
