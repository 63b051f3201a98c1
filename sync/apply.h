/* SPDX-License-Identifier: MIT */
#ifndef SYNC_APPLY_H
#define SYNC_APPLY_H

#include <stdatomic.h>

#include "sync/merge.h"
#include "sync/store.h"

/*
 * Changes a local directory from the tree `from`, which it should match, to the tree `to`.
 *
 * It touches nothing outside the root and follows no symbolic link (openat2, RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS). It writes a file beside its place, fsyncs it, checks the place once more
 * and exchanges the two; then it checks the file that it took out (sync/slot.h). If an editor saved
 * the file at that moment or has it open for writing, the place does not match `from`. Then apply
 * leaves the place unchanged and reports it. The caller takes another snapshot and merges again,
 * and so the path becomes a conflict.
 *
 * Existing files keep their access control list, their attributes and all permission bits except
 * the executable one. They also keep their owner and group if we may set these (base/file_keep.h).
 * Directories that become empty by a deletion are removed, unless ignored files are in them. A
 * case-only rename works on file systems that ignore case. `.git` is never touched, in any
 * spelling.
 *
 * If the process is killed, the directory has whole old and new files, each under its own name, and
 * temporary files named .acp-broker-*.tmp. Snapshots ignore these, and the next apply removes them.
 * The store notes the folders that may have some until the apply has ended. If a temporary file
 * holds what a user saved at the moment of the kill, it is kept as recovered.ID.acp-conflict and
 * reported as left.
 */
struct apply_request {
	const char *root; // absolute
	git_oid from, to; // trees
	/*
	 * The directory can be made again, so apply does no fsync. The caller must make sure that
	 * no program relies on the directory before it is on the disk.
	 */
	bool is_cache;
	/* Reports a path that was left unchanged, and why. May be NULL. */
	void (*on_left)(void *data, const char *path, const char *why);
	/*
	 * Reports a temporary file of a killed apply that cannot be removed, or a folder with such
	 * files that cannot be read. Each apply tries again. May be NULL.
	 */
	void (*on_remains)(void *data, const char *path, const char *why);
	void *data;
	const atomic_bool *is_cancelled; // checked between two files; may be NULL
};

struct apply_result {
	size_t written, deleted, left; // paths; those that already matched `to` are not counted
};

/*
 * To continue after a failure, run it again. ERROR_PROTOCOL if a tree contains something that no
 * snapshot may contain; ERROR_SYSTEM if the disk is full or broken, or an object is missing in the
 * store; ERROR_UNAVAILABLE if cancelled. `out` counts what was done, also on failure. A path that
 * cannot be changed for a reason of its own (no permission) is left.
 */
bool apply_run(struct store *store, const struct apply_request *request, struct apply_result *out,
	struct error *err) ATTR_NODISCARD;

/* Whether a name is one of apply's temporary files: never a member of a snapshot. */
bool apply_is_temporary(struct span name);

#endif
