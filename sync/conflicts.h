/* SPDX-License-Identifier: MIT */
#ifndef SYNC_CONFLICTS_H
#define SYNC_CONFLICTS_H

#include "base/list.h"
#include "sync/merge.h"
#include "sync/parked.h"

/*
 * Parking what lost a conflict, and getting it back. All conflicts of a sync are
 * kept under one ref, refs/acp-broker/conflicts/STAMP-ID, whose tree holds a folder
 * for each: its path, the versions it had, and whether it was held. So they outlive the base and
 * every checkpoint, until somebody takes a side. The runtime's version is also a file that the user
 * can open (sync/parked.h).
 *
 * Parks the runtime's versions; to be called before the merged tree is applied. Doing it again,
 * after a kill or with more conflicts, parks nothing twice; what has another local version by then
 * is parked with that alone. Sets the `file` of each conflict that has a version to park. A file
 * that cannot be written does not fail it: the store has the version. `stamp` is the time, as in
 * 20260131T101502; a part of names.
 */
bool conflicts_park(struct store *store, const struct merge *merge, const char *stamp,
	struct error *err) ATTR_NODISCARD;

struct parked {
	struct list link; // of the list that conflicts_list fills
	char *id;         // STAMP-ID/NUMBER: what the user names it by
	char *file;       // the runtime's version, absolute; unless the user has removed it
	struct conflict conflict;
};

/* All that are parked, oldest first. The list is to be finished in any case. */
bool conflicts_list(struct store *store, struct list *out_list, struct error *err) ATTR_NODISCARD;
void conflicts_finish(struct list *list);
/* By its id, or by its path where only one is parked of that; NULL: none. */
struct parked *conflicts_find(struct list *list, const char *id_or_path);

/* A merge of what the user has allowed. All are borrowed. */
struct settle_request {
	const struct merge *merge;
	const git_oid *runtime; // of the merge
	const git_oid *once;    // which changes were allowed (held_tree)
	const git_oid *always;  // paths that are always allowed; may be NULL
};

/*
 * Ends the conflicts of what was held and is in the merge now: the runtime's version is what both
 * sides are, or it is what was merged there by the user's leave. Their parked files are removed
 * unless somebody edited them.
 */
bool conflicts_settle(struct store *store, const struct settle_request *request,
	struct error *err) ATTR_NODISCARD;

enum conflict_side { CONFLICT_LOCAL, CONFLICT_RUNTIME };

/* Writes one version to a descriptor. ERROR_NOT_FOUND where that side had nothing. */
bool conflicts_show(struct store *store, const struct parked *parked, enum conflict_side side,
	int fd, struct error *err) ATTR_NODISCARD;

/*
 * Puts what the user has made of a conflict in the file's place, and ends the conflict. Nothing is
 * done where the place is not as `was` says: ERROR_UNAVAILABLE. What was there is kept as the
 * local version of the conflict (conflicts_file).
 */
bool conflicts_resolve(struct store *store, const char *root, const struct parked *parked,
	const struct store_entry *was, const struct store_entry *becomes,
	struct error *err) ATTR_NODISCARD;

/*
 * Ends a conflict. Taking the runtime's version puts it in the file's place, if that
 * is still the local version of the conflict; else ERROR_UNAVAILABLE, and
 * nothing was done. The version that was not taken is kept as a file.
 */
bool conflicts_take(struct store *store, const char *root, const struct parked *parked,
	enum conflict_side side, struct error *err) ATTR_NODISCARD;

/*
 * Making one version of all: begin writes them as files (sync/parked.h), of which merged/ has the
 * lines that both changed in git's conflict markers, or what an edit before has left. Then the user
 * edits that file. end puts it in the file's place, as conflicts_resolve does, unless it has
 * markers still: ERROR_UNAVAILABLE, and the edit stays for the next time.
 */
struct conflict_edit {
	char *files[PARKED_VERSIONS]; // owned; absolute
	bool has_base;                // false: the file of that is empty
	struct store_entry was;       // what the workspace had at the beginning
};
bool conflicts_edit_begin(struct store *store, const char *root, const struct parked *parked,
	struct conflict_edit *out_edit, struct error *err) ATTR_NODISCARD;
bool conflicts_edit_end(struct store *store, const char *root, const struct parked *parked,
	const struct conflict_edit *edit, struct error *err) ATTR_NODISCARD;
void conflicts_edit_finish(struct conflict_edit *edit); // zeroed is fine

/* Removes the files of conflicts that have ended, where nobody has changed them since `cutoff`. */
bool conflicts_sweep(struct store *store, time_t cutoff, struct error *err) ATTR_NODISCARD;

#endif
