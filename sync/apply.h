/* SPDX-License-Identifier: MIT */
#ifndef SYNC_APPLY_H
#define SYNC_APPLY_H

#include <stdatomic.h>

#include "sync/merge.h"
#include "sync/store.h"

/*
 * Makes a local directory, which is as the tree `from` says, what `to` says.
 *
 * Nothing outside the root is touched, through no link (openat2, RESOLVE_BENEATH
 * and RESOLVE_NO_SYMLINKS). A file is written beside its place, fsynced, and
 * exchanged with it after a last look, and what was taken from there is looked at once
 * more (sync/slot.h): where the place is not as `from` says - an editor saved at
 * that moment, or has it open for writing -, it is left as it is and reported; the
 * caller takes another snapshot and merges again, and so it becomes a conflict.
 * Of existing files permission bits other than the executable one, owner and group where we may
 * set them, access list and attributes stay (base/file_keep.h).
 * Directories that become empty by a deletion are removed; ignored files in
 * them keep them. A case-only rename works on file systems that ignore case.
 * `.git` is never touched, in no spelling.
 *
 * Killed at any point, the directory holds old and new files whole, each under its
 * own name, and temporary files named .acp-broker-*.tmp, which the next
 * apply removes; snapshots never see them. Which folders may hold such is noted in the
 * store until the apply has ended. Should one of them hold what a user saved in the very
 * moment of the kill, it is kept as recovered.ID.acp-conflict and reported as left.
 */
struct apply_request {
	const char *root; // absolute
	git_oid from, to; // trees
	/*
	 * Nothing is fsynced: for a directory that can be made anew. The caller sees to it that
	 * nobody believes it before it is on the disk.
	 */
	bool is_cache;
	/* Reports a path that was left as it is, and why. May be NULL. */
	void (*on_left)(void *data, const char *path, const char *why);
	/*
	 * Reports a temporary file of a killed one that cannot be removed, or a folder with such
	 * that cannot be read: each apply tries again. May be NULL.
	 */
	void (*on_remains)(void *data, const char *path, const char *why);
	void *data;
	const atomic_bool *is_cancelled; // may be NULL; between two files
};

struct apply_result {
	size_t written, deleted, left; // paths; what was as it should be is not counted
};

/*
 * Running it again finishes what a failed one began. ERROR_PROTOCOL where a tree holds
 * what no snapshot may hold; ERROR_SYSTEM where the disk is full or broken or the store
 * lacks something; ERROR_UNAVAILABLE when cancelled. `out` is true of what was done
 * also on failure. A path that only itself cannot be changed (no permission) is left.
 */
bool apply_run(struct store *store, const struct apply_request *request, struct apply_result *out,
	struct error *err) ATTR_NODISCARD;

/* Whether a name is one of those that apply uses on its way: never a member of a snapshot. */
bool apply_is_temporary(struct span name);

#endif
