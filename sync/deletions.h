/* SPDX-License-Identifier: MIT */
#ifndef SYNC_DELETIONS_H
#define SYNC_DELETIONS_H

#include "sync/id_set.h"
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
 * What has only another name is not deleted: `moved` has what is new (moved_find); NULL: nothing.
 * ERROR_PROTOCOL, as of tree_view_load. To be finished in any case.
 */
bool deletions_find(struct deletions *deletions, struct store *store, const git_oid *from,
	const git_oid *to, const struct id_set *moved, struct error *err) ATTR_NODISCARD;
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
