/* SPDX-License-Identifier: MIT */
#ifndef SYNC_IGNORE_H
#define SYNC_IGNORE_H

#include "sync/store.h"
#include "base/user_repository.h"

/*
 * Git's ignore rules for a work tree. libgit2 evaluates them on the store's own repository, with
 * the work tree set in memory; the user's repository is never opened. Paths are relative to the
 * work tree's root.
 */
struct ignore {
	struct store *store;
};

/*
 * Copies the user's global excludes and the repository's info/exclude into the store, where libgit2
 * looks for them. ERROR_SYSTEM.
 */
bool ignore_init(struct ignore *ignore, struct store *store,
	const struct user_repository *repository, const char *home,
	struct error *err) ATTR_NODISCARD;

/*
 * The same for a folder whose files lie at `top`, for example in a mirror. The rules are those from
 * above `rules_of` (the folder itself); .gitignore files in the folder are read below `top`.
 * ERROR_SYSTEM.
 */
struct ignore_elsewhere {
	const char *rules_of, *top;
};
bool ignore_init_elsewhere(struct ignore *ignore, struct store *store,
	const struct ignore_elsewhere *places, const char *home, struct error *err) ATTR_NODISCARD;

/*
 * Whether the rules ignore the path itself; the caller asks about the directories above it. libgit2
 * 1.5 skips a rule that begins with "!" and has no wildcard, unless an earlier rule in the same
 * file says the opposite. So "!keep.o" has no effect if "*.o" is in another file; then only git add
 * -f makes keep.o a member.
 */
bool ignore_matches(struct ignore *ignore, const char *path, bool is_folder);

#endif
