/* SPDX-License-Identifier: MIT */
#ifndef SYNC_DELETIONS_H
#define SYNC_DELETIONS_H

#include "sync/id_set.h"
#include "sync/rename_match.h"
#include "sync/store.h"

/*
 * The files that one tree has and another lacks: their number, examples, and an id of the whole
 * set.
 */
enum { DELETIONS_NAMED_MAX = 20 };

struct deletions {
	/* The caller sets these two. */
	bool is_users;    // deleted in the local directory, not in the sandbox
	bool is_replaced; // the local directory is another folder than before; then no paths
	size_t count;
	size_t total; // files before the deletion; set by the caller
	char **named; // owned, NULL-terminated: the first DELETIONS_NAMED_MAX paths; NULL: none
	git_oid id;   // hash of all paths: identifies this set
};

/*
 * Files that were only renamed. Each new file excuses one missing path, even if several missing
 * files had its content.
 */
struct deletions_moved {
	struct rename_files files; // of renames_find_moved
	struct id_set ids;   // new ids, from moved_find: a link, or a file that replaced another
	struct id_set spent; // those that have excused a path already
};
void deletions_moved_finish(struct deletions_moved *moved);

/*
 * Finds the deletions. A file that was only renamed does not count; if `moved` is NULL, no file
 * was. Uses up `moved`. ERROR_PROTOCOL as in tree_view_load. Finish it in any case.
 */
bool deletions_find(struct deletions *deletions, struct store *store, const git_oid *from,
	const git_oid *to, struct deletions_moved *moved, struct error *err) ATTR_NODISCARD;
void deletions_finish(struct deletions *deletions);

/*
 * Identifies what the user has deleted: paths that the base and the runtime have, but not the merge
 * of these with the local directory.
 */
struct spared {
	git_oid base, runtime, merged;
};

/* Adds to `tree` each such path, with the version of the base or of the runtime. */
bool deletions_spare(struct store *store, const struct spared *spared, bool is_base,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

#endif
