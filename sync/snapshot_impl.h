/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SNAPSHOT_IMPL_H
#define SYNC_SNAPSHOT_IMPL_H

#include "base/span.h"
#include "sync/listing.h"
#include "sync/snapshot.h"

/* What the files of the snapshot share; everyone else uses sync/snapshot.h. */

/* `.git`, in any spelling that some file system takes for it. */
bool snapshot_name_is_git(struct span name);
/* The same of `.gitmodules`, which git takes for no link's name: no tree of it could travel. */
bool snapshot_name_is_gitmodules(struct span name);
/*
 * Makes one text of all spellings that some file system takes for a name of ASCII: small letters,
 * without hidden characters, dots and blanks at the end, and the name of a stream. Never longer.
 */
void snapshot_name_fold(char *name);
/* Whether some file system takes the name for `plain`, which is in lower case. */
bool snapshot_name_is_spelling_of(struct span name, const char *plain);
/* A name of .git, a parked version, or a temporary file of ours: never a member. */
bool snapshot_name_is_left_out(struct span name);

/* Adds to the note what the user should be told; a note that is full stays as it is. */
void snapshot_note(struct snapshot *snapshot, const char *format, ...) ATTR_PRINTF(2, 3);

/*
 * Puts the trees of a listing whose files are all known into the store, and their ids into the
 * listing; what is as in the cache is there already.
 */
bool snapshot_write_trees(struct store *store, struct listing *listing, const struct listing *cache,
	struct error *err) ATTR_NODISCARD;

#endif
