/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GUARD_LINKS_H
#define SYNC_GUARD_LINKS_H

#include "sync/guard_paths.h"
#include "sync/store.h"

/*
 * The links in a tree through which a guarded file has a second path: with `.vscode -> conf`,
 * conf/tasks.json is also .vscode/tasks.json. This finds the guarded names of such a path. Links
 * that lead out of the root do not count.
 */
struct guard_links;

enum {
	GUARD_LINKS_MAX = 10000, // links that lead to a guarded file
};

/*
 * Reads the whole tree. `root` is its directory, to resolve absolute link targets. `guard` is
 * borrowed. ERROR_LIMIT, and the errors of tree_view_load.
 */
struct guard_links *guard_links_find(const struct guard_paths *guard, struct store *store,
	const git_oid *tree, const char *root, struct error *err) ATTR_NODISCARD;
void guard_links_destroy(struct guard_links *links); // NULL is fine

/*
 * The next guarded name that links give to the path; NULL after the last. `is_link`: the path is
 * about to become a link. The caller frees the name. Set `at` to zero before the first call.
 */
char *guard_links_next(const struct guard_links *links, const char *path, bool is_link, size_t *at);

#endif
