/* SPDX-License-Identifier: MIT */
#ifndef SYNC_MEMBERS_H
#define SYNC_MEMBERS_H

#include "sync/ignore.h"
#include "sync/listing.h"
#include "sync/nested.h"
#include "sync/snapshot.h"
#include "sync/tracked.h"

/*
 * Which paths are members of a snapshot (sync/snapshot.h says which). What is in the
 * base costs a look at the base; ignore rules and the user's index, which are dear, are only
 * asked about the rest.
 */
struct members {
	struct store *store;
	const struct snapshot_request *request;
	struct user_repository repository;
	size_t prefix; // length of the root's path in the work tree, with its slash
	struct ignore ignore;
	git_pathspec *include, *exclude; // NULL: none
	struct tracked tracked;          // of the repository around the root
	struct nested **nested;          // owned; repositories below the root
	size_t nested_count;
	struct buf nested_paths; // sync/nested.h
};

/* A path, and the folder that it is in. */
struct candidate {
	char path[PATH_MAX];  // from the work tree's root
	size_t folder_length; // the name begins there
	uint32_t folder;      // in the listing
	struct listing *listing;
	bool is_in_base;
};

bool members_init(struct members *members, struct store *store,
	const struct snapshot_request *request, struct error *err) ATTR_NODISCARD;
void members_finish(struct members *members);

/* The candidate's path from the snapshot's root. */
static inline const char *members_path(const struct members *members, const struct candidate *at)
{
	return at->path + members->prefix;
}

/* The candidate's folder holds a .git: what is below it is tracked there. */
void members_add_nested(struct members *members, const struct candidate *at);

bool members_has_file(struct members *members, struct candidate *at);
/* Whether there may be members below it. */
bool members_has_folder(struct members *members, struct candidate *at);

/* What the user should know of the repositories that could not be read; "" for nothing. */
void members_note(const struct members *members, struct snapshot *snapshot);

#endif
