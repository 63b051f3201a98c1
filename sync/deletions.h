/* SPDX-License-Identifier: MIT */
#ifndef SYNC_DELETIONS_H
#define SYNC_DELETIONS_H

#include "sync/store.h"

/* What is there in one tree and gone in another, in numbers, by example, and as a whole. */
enum { DELETIONS_NAMED_MAX = 20 };

struct deletions {
	size_t count;
	size_t total; // files there were; the caller's to fill in
	char **named; // owned, NULL-terminated: the first DELETIONS_NAMED_MAX paths; NULL: none
	git_oid id;   // of all the paths: another set has another one
};

/* ERROR_PROTOCOL, as of tree_view_load. To be finished in any case. */
bool deletions_find(struct deletions *deletions, struct store *store, const git_oid *from,
	const git_oid *to, struct error *err) ATTR_NODISCARD;
void deletions_finish(struct deletions *deletions);

#endif
