/* SPDX-License-Identifier: MIT */
#ifndef BASE_IGNORE_RULES_H
#define BASE_IGNORE_RULES_H

#include <stdint.h>

#include "base/buf.h"
#include "base/user_repository.h"

/*
 * The rules of gitignore(5) for a folder that do not stand in a .gitignore file of it: the
 * user's global ones, the repository's info/exclude and, where the folder lies inside of a
 * larger work tree, the .gitignore files above it. The later of two wins.
 */
enum { IGNORE_RULES_MAX = 4 << 20 };

/*
 * Appends those for a folder that is to be the top of a work tree of its own, wherever that will
 * be: rules of what is above are written anew, and left out where they can match nothing in it.
 * A repository that ignores the folder has no say in it. `home` may be NULL. What cannot be
 * read, or does not fit, is left out. Blocks.
 */
void ignore_rules_read(const char *folder, const char *home, struct buf *out);

/* Appends those for the top of the repository's work tree, as they are. */
void ignore_rules_of_top(
	const struct user_repository *repository, const char *home, struct buf *out);

/*
 * Appends the rules of one file that stands `below` above the folder ("" is the folder
 * itself). Sets in *ignored, a bit for each name of `below`, what they say of the folders on
 * the way: 1 is ignored.
 */
void ignore_rules_lower(struct span rules, const char *below, uint64_t *ignored, struct buf *out);

#endif
