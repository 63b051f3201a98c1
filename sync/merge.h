/* SPDX-License-Identifier: MIT */
#ifndef SYNC_MERGE_H
#define SYNC_MERGE_H

#include "base/buf.h"
#include "base/list.h"
#include "sync/guard_paths.h"
#include "sync/id_set.h"
#include "sync/store.h"
#include "sync/stuck.h"

/*
 * The three-way merge of two trees that every transport shares. It looks only
 * at the store, and reads only the folders in which the trees differ.
 *
 * One side changed a path: that side's. Both changed it to the same: that. The
 * content and the executable bit of a file are two things: each is that of the
 * side that changed it. Both changed the text of a file: the merge of the texts,
 * where they merge cleanly and none is binary (sync/merge_text.h). Otherwise it is
 * a conflict: the local version stays, and the runtime's is listed to be parked.
 * A file on one side that is in the way of a directory on the other is a
 * conflict of the paths below the directory or of the file, whichever is the
 * runtime's. Never is a version dropped: it is in the merged tree, or it is in the
 * base unchanged, or it is a conflict's, or it was delivered from the local side.
 *
 * A deletion against a change is a conflict with the changed version kept: where
 * local deleted and the runtime changed, the runtime's version is parked; where
 * the runtime deleted and local changed, the local version stays and there is
 * nothing to park (the conflict's runtime has a mode of 0): the user is told.
 *
 * What is stuck stays as it is in the local tree; what the runtime has made of it is a conflict.
 *
 * What the runtime would make of a guarded file (sync/guard_paths.h), its deletion too, is held:
 * the local version stays, the runtime's stays there, and nothing is a conflict. So `merged` is
 * what the local directory becomes; the runtime becomes the same but for what is held
 * (sync/held.h). Where one side has a folder in its place, all of the folder stays as it is with
 * it. The same holds for a deletion of what the agent has moved to where it is not brought from.
 */
enum {
	MERGE_ROWS_MAX = 4000000,     // names looked at: a tree can repeat itself without end
	MERGE_CONFLICTS_MAX = 100000, // that are kept in memory
	MERGE_HELD_MAX = 10000,
};

struct conflict {
	struct list link; // merge.conflicts
	char *path;
	struct store_entry base, local, runtime; // a mode of 0: nothing there
	const char *why; // the local path is stuck (static); NULL: both sides have changed it
	char *file;      // owned; the parked version of the runtime (sync/conflicts.h), or NULL
	bool is_held;    // a held change, parked by held_park: the user has not allowed it
};

enum held_state {
	HELD_WAITS,   // for other questions to be answered
	HELD_ASKED,   // it is in the question that this sync ends with
	HELD_REFUSED, // the user has said no to just that
	HELD_STATES,
};

/* A change of the runtime's that waits for the user. */
struct held_change {
	enum held_state state; // held_choose
	struct list link;      // merge.held
	char *path;
	struct store_entry base, local, runtime;
	struct store_entry made; // what the local file would become; a mode of 0: it is deleted
	bool is_whole;           // a folder stands there on one side, and all of it stays there
	git_oid base_folder, runtime_folder; // of these sides; may be the empty tree
	char *old_text, *new_text;           // owned, for people; NULL: no text to show (held_read)
};

struct merge_counts {
	size_t added, changed, deleted; // paths, as the other side sees it
};

struct merge {
	git_oid merged;        // tree: what both sides shall be
	struct list conflicts; // of struct conflict, by path
	size_t conflict_count;
	struct list held; // of struct held_change
	size_t held_count;
	struct list moved; // the same: deletions that wait without a question (sync/moved.h)
	size_t moved_count;
	bool is_over;                             // it failed: more than MERGE_HELD_MAX of both
	struct merge_counts to_local, to_runtime; // what applying `merged` changes there
	size_t text_merges;
};

struct merge_trees {
	git_oid base, local, runtime;
};

struct merge_options {
	bool keeps_deleted;  // what the runtime has deleted and local has not touched stays
	struct stuck *stuck; // borrowed; may be NULL
	/*
	 * What the runtime was to become when a delivery was cut off; borrowed, may be NULL. Where
	 * the runtime is that already, it is not the runtime that has changed the path.
	 */
	const git_oid *delivered;
	const struct guard_paths *guard; // borrowed; may be NULL
	const char *root;                // the local directory; with a guard
	/*
	 * Trees of guarded paths that the user has allowed: once, what each is made; always,
	 * whatever it is made. Borrowed; may be NULL.
	 */
	const git_oid *allowed_once, *allowed_always;
	const struct id_set *moved; // of moved_find; borrowed; may be NULL
};

/*
 * ERROR_PROTOCOL where a tree holds what no snapshot may hold, naming the path;
 * ERROR_LIMIT over one of the limits above. To be finished in any case.
 */
bool merge_run(struct merge *merge, struct store *store, const struct merge_trees *trees,
	struct error *err) ATTR_NODISCARD;
bool merge_run_as(struct merge *merge, struct store *store, const struct merge_trees *trees,
	const struct merge_options *options, struct error *err) ATTR_NODISCARD;
void merge_init(struct merge *merge);                  // an empty one
void merge_move(struct merge *to, struct merge *from); // `from` is empty then
/* Those of paths that `to` has a conflict of are freed. */
void merge_take_conflicts(struct merge *to, struct merge *from);
void merge_finish(struct merge *merge);

#endif
