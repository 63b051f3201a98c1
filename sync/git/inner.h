/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_INNER_H
#define SYNC_GIT_INNER_H

#include <limits.h>

#include "sync/git/history.h"

/*
 * The repositories below the workspace's root, including submodules, whose history travels: the
 * first INNER_MAX of sync/nested.h, sorted by path. A repository whose path is too long for a ref
 * (sync/git/commits.h) is left out, too. Of the repositories that are left out, the runtime has
 * only the files.
 */
enum { INNER_MAX = 32 };

/*
 * Sets histories[1] and the following to the paths in histories[0]->nested, sorted; a history that
 * existed keeps its state. Each gets its own `nested`. Returns the number of all histories.
 */
size_t inner_update(struct history *histories[1 + INNER_MAX], size_t count);

/*
 * The folder of a repository below the root; the root itself if the path is "". False if it cannot
 * be reached, or a symbolic link is on the way, which would lead out of the workspace. Blocks.
 */
bool inner_root(const char *root, const char *path, char out[PATH_MAX]) ATTR_NODISCARD;

#endif
