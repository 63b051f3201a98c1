/* SPDX-License-Identifier: MIT */
#ifndef BASE_IGNORE_RULES_H
#define BASE_IGNORE_RULES_H

#include <stdint.h>

#include "base/buf.h"
#include "base/user_repository.h"

/*
 * The rules of gitignore(5) that apply to a folder but are not in its own .gitignore files: the
 * user's global file, the repository's info/exclude and, if the folder lies inside of a larger work
 * tree, the .gitignore files above it. The later of two matching rules wins.
 */
enum { IGNORE_RULES_MAX = 4 << 20 };

/*
 * Appends the rules for a folder that will be the top of a separate work tree, wherever that will
 * be. Rules of folders above are rewritten for the new top; those that cannot match below it are
 * left out. A repository that ignores the folder itself contributes no rules. `home` may be NULL.
 * Files that cannot be read or do not fit are left out. Blocks.
 */
void ignore_rules_read(const char *folder, const char *home, struct buf *out);

/* Appends the rules for the top of the repository's work tree, unchanged. */
void ignore_rules_of_top(
	const struct user_repository *repository, const char *home, struct buf *out);

/*
 * Appends the rules of one file that lies above the folder; `below` is the path from the file's
 * folder down to ours ("" if it is ours). Sets in *ignored a bit for each name of `below`: 1 if the
 * rules ignore that folder on the way.
 */
void ignore_rules_lower(struct span rules, const char *below, uint64_t *ignored, struct buf *out);

#endif
