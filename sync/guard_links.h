/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GUARD_LINKS_H
#define SYNC_GUARD_LINKS_H

#include "sync/guard_paths.h"
#include "sync/store.h"

/*
 * The links of a tree by which a guarded file is found at another place of it: with
 * `.vscode -> conf`, conf/tasks.json is .vscode/tasks.json too. This knows the guarded names of
 * such a place. A link that leads out of the root has none.
 */
struct guard_links;

enum {
	GUARD_LINKS_MAX = 10000, // links that lead to a guarded file
};

/*
 * Reads the whole tree. `root` is its directory, for targets that are absolute paths. `guard` is
 * borrowed. ERROR_LIMIT, and the errors of tree_view_load.
 */
struct guard_links *guard_links_find(const struct guard_paths *guard, struct store *store,
	const git_oid *tree, const char *root, struct error *err) ATTR_NODISCARD;
void guard_links_destroy(struct guard_links *links); // NULL is fine

/*
 * The next guarded name by which a path is found through links; NULL after the last. `is_link`: the
 * path becomes a link. It is the caller's to free. Zero `at` before the first call.
 */
char *guard_links_next(const struct guard_links *links, const char *path, bool is_link, size_t *at);

#endif
