/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_PART_H
#define SYNC_GIT_PART_H

#include "base/buf.h"

/*
 * A workspace that is a part of a repository: the runtime has the whole history, and a work tree
 * with this part alone. For git that is a sparse checkout.
 *
 * Makes the patterns of the user's own sparse checkout, of cones, or none, those of what is both in
 * it and in the part: patterns of gitignore(5) that are no cones any more. `part` is as
 * user_repository_is_place wants its names. ERROR_LIMIT.
 */
bool part_narrow(struct buf *patterns, const char *part, struct error *err) ATTR_NODISCARD;

#endif
