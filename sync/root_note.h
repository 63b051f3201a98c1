/* SPDX-License-Identifier: MIT */
#ifndef SYNC_ROOT_NOTE_H
#define SYNC_ROOT_NOTE_H

#include "sync/store.h"

/*
 * Which folder the local directory was when it was last synced with a sandbox, by its inode: one
 * that is not mounted, or was made anew, is another one. The device is noted too, and not compared:
 * it has another number after a restart of the machine, as on btrfs and NFS. The store has it as
 * roots/NAME.
 */
struct root_note {
	uint64_t device, inode;
};

/* What the directory is now. ERROR_SYSTEM. */
bool root_note_take(struct root_note *note, const char *root, struct error *err) ATTR_NODISCARD;

bool root_note_is_same(const struct root_note *a, const struct root_note *b);

/* An id of it, as of a set of deletions (sync/deletions.h). */
bool root_note_id(struct store *store, const struct root_note *note, git_oid *out_id,
	struct error *err) ATTR_NODISCARD;

/* What cannot be read is as good as none. */
bool root_note_find(struct store *store, const char *sandbox, struct root_note *out);
bool root_note_keep(struct store *store, const char *sandbox, const struct root_note *note,
	struct error *err) ATTR_NODISCARD;
bool root_note_forget(struct store *store, const char *sandbox, struct error *err) ATTR_NODISCARD;

#endif
