/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_INNER_H
#define SYNC_GIT_INNER_H

#include <limits.h>

#include "sync/git/history.h"

/*
 * The repositories below the workspace's root, submodules among them, whose history travels: the
 * first INNER_MAX of sync/nested.h in the order of their paths. One whose path is too long for a
 * ref (sync/git/commits.h) is left out, too. The others have their files in the runtime alone.
 */
enum { INNER_MAX = 32 };

/*
 * Makes histories[1] and what follows those of the paths that histories[0]->nested has, in order;
 * what is known of one that was there stays. Each gets its own `nested`. The number of all.
 */
size_t inner_update(struct history *histories[1 + INNER_MAX], size_t count);

/*
 * The folder of a repository below the root, or the root itself where the path is "". False where
 * it cannot be reached, or a link is on the way: that would lead to what is none of the
 * workspace's. Blocks.
 */
bool inner_root(const char *root, const char *path, char out[PATH_MAX]) ATTR_NODISCARD;

#endif
