/* SPDX-License-Identifier: MIT */
#ifndef SYNC_IGNORE_H
#define SYNC_IGNORE_H

#include "sync/store.h"
#include "base/user_repository.h"

/*
 * Git's ignore rules for a work tree, evaluated by libgit2 on the store's own
 * repository with the work tree set in memory: the user's is never opened. Paths are
 * from the work tree's root.
 */
struct ignore {
	struct store *store;
};

/*
 * Copies the user's global excludes and the repository's info/exclude into the store,
 * where libgit2 looks for them. ERROR_SYSTEM.
 */
bool ignore_init(struct ignore *ignore, struct store *store,
	const struct user_repository *repository, const char *home,
	struct error *err) ATTR_NODISCARD;

/*
 * The same for a folder whose files lie at `top`, in a mirror say: with the rules that are above
 * `rules_of`, the folder itself, but those of the .gitignore files in it. ERROR_SYSTEM.
 */
struct ignore_elsewhere {
	const char *rules_of, *top;
};
bool ignore_init_elsewhere(struct ignore *ignore, struct store *store,
	const struct ignore_elsewhere *places, const char *home, struct error *err) ATTR_NODISCARD;

/*
 * What the rules say of the path itself; its directories are the caller's to ask about.
 * libgit2 1.5 takes a rule that begins with "!" and has no wildcard for void unless one before
 * it in the same file says the opposite: "!keep.o" against a "*.o" of another file does not
 * make keep.o a member. git add -f does.
 */
bool ignore_matches(struct ignore *ignore, const char *path, bool is_folder);

#endif
