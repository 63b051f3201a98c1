/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SNAPSHOT_IMPL_H
#define SYNC_SNAPSHOT_IMPL_H

#include "base/span.h"
#include "sync/listing.h"
#include "sync/snapshot.h"

/* Shared by the files of the snapshot; everyone else uses sync/snapshot.h. */

/* `.git`, in any spelling that some file system treats as equal. */
bool snapshot_name_is_git(struct span name);
/*
 * The same for `.gitmodules`: git refuses a link of that name, so a tree with such a link could not
 * be transferred.
 */
bool snapshot_name_is_gitmodules(struct span name);
/*
 * Folds all spellings that some file system treats as equal to an ASCII name into one: lower case,
 * without hidden characters, without trailing dots and spaces, and without the name of a stream.
 * Never longer.
 */
void snapshot_name_fold(char *name);
/* Whether some file system treats the name as `plain`, which is in lower case. */
bool snapshot_name_is_spelling_of(struct span name, const char *plain);
/* Whether the name is .git, a parked version, or a temporary file of ours: never a member. */
bool snapshot_name_is_left_out(struct span name);

/* Adds a message for the user to the note; a full note stays unchanged. */
void snapshot_note(struct snapshot *snapshot, const char *format, ...) ATTR_PRINTF(2, 3);

/*
 * Puts the trees of a listing into the store, and their ids into the listing. All ids of its files
 * must be known. A tree that matches the cache is already in the store.
 */
bool snapshot_write_trees(struct store *store, struct listing *listing, const struct listing *cache,
	struct error *err) ATTR_NODISCARD;

#endif
