/* SPDX-License-Identifier: MIT */
#ifndef SYNC_MEMBERS_H
#define SYNC_MEMBERS_H

#include "sync/ignore.h"
#include "sync/listing.h"
#include "sync/nested.h"
#include "sync/snapshot.h"
#include "sync/tracked.h"

/*
 * Decides which paths are members of a snapshot (sync/snapshot.h has the rules). A path in the base
 * costs only a lookup in the base. Ignore rules and the user's index are expensive, so that they
 * are only used for the rest.
 */
struct members {
	struct store *store;
	const struct snapshot_request *request;
	struct user_repository repository;
	size_t prefix; // length of the root's path in the work tree, with its slash
	struct ignore ignore;
	git_pathspec *include, *exclude; // may be NULL
	struct tracked tracked;          // of the repository around the root
	struct nested **nested;          // owned; repositories below the root
	size_t nested_count;
	struct buf nested_paths; // sync/nested.h
};

/* A path, and its folder. */
struct candidate {
	char path[PATH_MAX];  // relative to the work tree's root
	size_t folder_length; // the name begins there
	uint32_t folder;      // index in the listing
	struct listing *listing;
	bool is_in_base;
};

bool members_init(struct members *members, struct store *store,
	const struct snapshot_request *request, struct error *err) ATTR_NODISCARD;
void members_finish(struct members *members);

/* The candidate's path relative to the snapshot's root. */
static inline const char *members_path(const struct members *members, const struct candidate *at)
{
	return at->path + members->prefix;
}

/* The candidate's folder has a .git, so that this repository tracks everything below it. */
void members_add_nested(struct members *members, const struct candidate *at);

bool members_has_file(struct members *members, struct candidate *at);
/* Whether there may be members below it. */
bool members_has_folder(struct members *members, struct candidate *at);

/* Notes for the user which repositories could not be read, if any. */
void members_note(const struct members *members, struct snapshot *snapshot);

#endif
