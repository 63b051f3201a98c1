/* SPDX-License-Identifier: MIT */
#ifndef SYNC_DELETIONS_H
#define SYNC_DELETIONS_H

#include "sync/id_set.h"
#include "sync/rename_match.h"
#include "sync/store.h"

/* What is there in one tree and gone in another, in numbers, by example, and as a whole. */
enum { DELETIONS_NAMED_MAX = 20 };

struct deletions {
	/* The caller's to fill in. */
	bool is_users;    // they were made here, and not in the sandbox
	bool is_replaced; // no path is known: the local directory is another one than before
	size_t count;
	size_t total; // files there were; the caller's to fill in
	char **named; // owned, NULL-terminated: the first DELETIONS_NAMED_MAX paths; NULL: none
	git_oid id;   // of all the paths: another set has another one
};

/*
 * What has only another name: each file excuses one path alone, however many are gone that had its
 * content.
 */
struct deletions_moved {
	struct rename_files files; // of renames_find_moved
	struct id_set ids;         // what is new, of moved_find: a link, or a file over another one
	struct id_set spent;       // those that have excused a path
};
void deletions_moved_finish(struct deletions_moved *moved);

/*
 * What has only another name is not deleted; a NULL: nothing has. Spends it.
 * ERROR_PROTOCOL, as of tree_view_load. To be finished in any case.
 */
bool deletions_find(struct deletions *deletions, struct store *store, const git_oid *from,
	const git_oid *to, struct deletions_moved *moved, struct error *err) ATTR_NODISCARD;
void deletions_finish(struct deletions *deletions);

/*
 * What the user has deleted: it is in the base and in the runtime, and not in the merge of these
 * with the local directory.
 */
struct spared {
	git_oid base, runtime, merged;
};

/* `tree` with the version that the base, or the runtime, has of each such path. */
bool deletions_spare(struct store *store, const struct spared *spared, bool is_base,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

#endif
