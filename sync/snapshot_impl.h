/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SNAPSHOT_IMPL_H
#define SYNC_SNAPSHOT_IMPL_H

#include "base/span.h"
#include "sync/snapshot.h"

/* What the files of the snapshot share; everyone else uses sync/snapshot.h. */

/* `.git`, in any spelling that some file system takes for it. */
bool snapshot_name_is_git(struct span name);
/* That, a parked version, or a temporary file of ours: never a member. */
bool snapshot_name_is_left_out(struct span name);

/* Adds to the note what the user should be told; a note that is full stays as it is. */
void snapshot_note(struct snapshot *snapshot, const char *format, ...) ATTR_PRINTF(2, 3);

#endif
