/* SPDX-License-Identifier: MIT */
#ifndef SYNC_CONFLICTS_H
#define SYNC_CONFLICTS_H

#include "base/list.h"
#include "sync/merge.h"

/*
 * Parking what lost a conflict, and getting it back. All conflicts of a sync are
 * kept under one ref, refs/acp-broker/conflicts/STAMP-ID, whose tree holds a folder
 * for each: its path, and the versions it had. So they outlive the base and every
 * checkpoint, until somebody takes a side.
 */
struct park_request {
	const char *root;  // absolute
	const char *stamp; // of time, as in 20260131T101502; a part of names
	/* For each that has a version to park, after it is written. `parked` is its path
	   below the root, or NULL where it could not be written there: why says so. */
	void (*on_parked)(
		void *data, const struct conflict *conflict, const char *parked, const char *why);
	void *data; // may be NULL as on_parked may
};

/*
 * Parks the runtime's versions, in the store first and then beside the files; to be
 * called before the merged tree is applied. Doing it again, after a kill or with more conflicts,
 * parks nothing twice; what has another local version by then is parked with that alone. A parked
 * file that cannot be written does not fail it: the store has it.
 */
bool conflicts_park(struct store *store, const struct merge *merge,
	const struct park_request *request, struct error *err) ATTR_NODISCARD;

struct parked {
	struct list link; // of the list that conflicts_list fills
	char *id;         // STAMP-ID/NUMBER: what the user names it by
	char *file;       // where its file is, if it was not moved; below the root
	struct conflict conflict;
};

/* All that are parked, oldest first. The list is to be finished in any case. */
bool conflicts_list(struct store *store, struct list *out_list, struct error *err) ATTR_NODISCARD;
void conflicts_finish(struct list *list);
/* By its id, or by its path where only one is parked of that; NULL: none. */
struct parked *conflicts_find(struct list *list, const char *id_or_path);

/* A merge of what the user has allowed. All are borrowed. */
struct settle_request {
	const char *root;
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
 * Ends a conflict. Taking the runtime's version puts it in the file's place, if that
 * is still the local version of the conflict; else ERROR_UNAVAILABLE, and
 * nothing was done. The parked file is removed unless somebody edited it.
 */
bool conflicts_take(struct store *store, const char *root, const struct parked *parked,
	enum conflict_side side, struct error *err) ATTR_NODISCARD;

#endif
