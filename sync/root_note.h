/* SPDX-License-Identifier: MIT */
#ifndef SYNC_ROOT_NOTE_H
#define SYNC_ROOT_NOTE_H

#include "sync/store.h"

/*
 * Identifies the local directory of the last sync with a sandbox, by its inode. If its file system
 * is not mounted, or the folder was made again, the inode differs. The device is noted but not
 * compared, because its number changes at a restart of the machine, for example on btrfs and NFS.
 * The store has the note as roots/NAME.
 */
struct root_note {
	uint64_t device, inode;
};

/* Reads the directory's current identity. ERROR_SYSTEM. */
bool root_note_take(struct root_note *note, const char *root, struct error *err) ATTR_NODISCARD;

bool root_note_is_same(const struct root_note *a, const struct root_note *b);

/* Hashes the note, for use as the id of a question (sync/deletions.h). */
bool root_note_id(struct store *store, const struct root_note *note, git_oid *out_id,
	struct error *err) ATTR_NODISCARD;

/* A note that cannot be read counts as missing. */
bool root_note_find(struct store *store, const char *sandbox, struct root_note *out);
bool root_note_keep(struct store *store, const char *sandbox, const struct root_note *note,
	struct error *err) ATTR_NODISCARD;
bool root_note_forget(struct store *store, const char *sandbox, struct error *err) ATTR_NODISCARD;

#endif
