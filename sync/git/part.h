/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_PART_H
#define SYNC_GIT_PART_H

#include "base/buf.h"

/*
 * For a workspace that is a part of a repository: the runtime has the whole history, but only this
 * part in its work tree. For git that is a sparse checkout.
 *
 * Replaces the patterns of the user's own sparse checkout (of cones, or empty) by patterns for its
 * intersection with the part. These are patterns of gitignore(5), no longer cones. The names of
 * `part` must satisfy user_repository_is_place. ERROR_LIMIT.
 */
bool part_narrow(struct buf *patterns, const char *part, struct error *err) ATTR_NODISCARD;

#endif
