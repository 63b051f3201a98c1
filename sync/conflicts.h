/* SPDX-License-Identifier: MIT */
#ifndef SYNC_CONFLICTS_H
#define SYNC_CONFLICTS_H

#include "base/list.h"
#include "sync/merge.h"
#include "sync/parked.h"

/*
 * Parks the version that loses a conflict, and brings it back. All conflicts of one sync are kept
 * under one ref, refs/acp-broker/conflicts/STAMP-ID. Its tree has a folder for each conflict: the
 * path, the versions, and whether it was held. So a conflict outlives the base and every
 * checkpoint, until the user takes a side. The runtime's version is also a file that the user can
 * open (sync/parked.h).
 *
 * conflicts_park parks the runtime's versions; call it before the merged tree is applied. If it is
 * called again, after a kill or with more conflicts, it parks nothing twice; a conflict whose local
 * version has changed since is parked with the new one only. It sets `file` of each conflict that
 * has a version to park. It succeeds even if that file cannot be written, because the store has the
 * version. `stamp` is the time, like 20260131T101502; names contain it.
 */
bool conflicts_park(struct store *store, const struct merge *merge, const char *stamp,
	struct error *err) ATTR_NODISCARD;

struct parked {
	struct list link; // of the list that conflicts_list fills
	char *id;         // STAMP-ID/NUMBER, the name for the user
	char *file;       // path of the runtime's version, absolute; NULL if the user removed it
	struct conflict conflict;
};

/* Lists all parked conflicts, oldest first. Finish the list in any case. */
bool conflicts_list(struct store *store, struct list *out_list, struct error *err) ATTR_NODISCARD;
void conflicts_finish(struct list *list);
/* Finds one by its id, or by its path if only one conflict of that path is parked; else NULL. */
struct parked *conflicts_find(struct list *list, const char *id_or_path);

/* A merge that includes changes which the user allowed. All members are borrowed. */
struct settle_request {
	const struct merge *merge;
	const git_oid *runtime; // the runtime's tree in the merge
	const git_oid *once;    // the changes that were allowed once (held_tree)
	const git_oid *always;  // paths that are always allowed; may be NULL
};

/*
 * Ends the conflicts of held changes that the merge now includes: both sides have the runtime's
 * version, or the user allowed it and it was merged. Removes their parked files, unless somebody
 * edited them.
 */
bool conflicts_settle(struct store *store, const struct settle_request *request,
	struct error *err) ATTR_NODISCARD;

enum conflict_side { CONFLICT_LOCAL, CONFLICT_RUNTIME };

/* Writes one version to a file descriptor. ERROR_NOT_FOUND if that side had no version. */
bool conflicts_show(struct store *store, const struct parked *parked, enum conflict_side side,
	int fd, struct error *err) ATTR_NODISCARD;

/*
 * Puts the user's resolution of a conflict in the file's place, and ends the conflict. If the place
 * does not match `was`, fails with ERROR_UNAVAILABLE and changes nothing. The old content of the
 * place is kept as a file (PARKED_LOCAL in sync/parked.h).
 */
bool conflicts_resolve(struct store *store, const char *root, const struct parked *parked,
	const struct store_entry *was, const struct store_entry *becomes,
	struct error *err) ATTR_NODISCARD;

/*
 * Ends a conflict. To take the runtime's version, the file's place must still have the conflict's
 * local version; otherwise it fails with ERROR_UNAVAILABLE and changes nothing. The version that
 * was not taken is kept as a file.
 */
bool conflicts_take(struct store *store, const char *root, const struct parked *parked,
	enum conflict_side side, struct error *err) ATTR_NODISCARD;

/*
 * Lets the user merge the versions by hand. `begin` writes them as files (sync/parked.h). merged/
 * gets the merge, with git's conflict markers around lines that both sides changed; if an earlier
 * edit exists, it stays. Then the user edits that file. `end` puts it in the file's place, like
 * conflicts_resolve. If it still has markers, `end` fails with ERROR_UNAVAILABLE, and the edit
 * stays for the next time.
 */
struct conflict_edit {
	char *files[PARKED_VERSIONS]; // owned; absolute
	bool has_base;                // false: the base's file is empty
	struct store_entry was;       // the workspace's version at the beginning
};
bool conflicts_edit_begin(struct store *store, const char *root, const struct parked *parked,
	struct conflict_edit *out_edit, struct error *err) ATTR_NODISCARD;
bool conflicts_edit_end(struct store *store, const char *root, const struct parked *parked,
	const struct conflict_edit *edit, struct error *err) ATTR_NODISCARD;
void conflicts_edit_finish(struct conflict_edit *edit); // zeroed is fine

/* Removes the files of ended conflicts, unless somebody changed them since `cutoff`. */
bool conflicts_sweep(struct store *store, time_t cutoff, struct error *err) ATTR_NODISCARD;

#endif
