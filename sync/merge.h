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
 * The three-way merge of two trees, shared by every transport. It reads only the store, and only
 * the folders in which the trees differ.
 *
 * If one side changed a path, that side wins. If both made the same change, that is the result. The
 * content and the executable bit of a file merge separately. If both changed the text of a file,
 * the texts are merged (sync/merge_text.h). If that fails, or one of them is binary, it is a
 * conflict: the local version stays, and the runtime's is listed to be parked. If a file on one
 * side is in the way of a directory on the other, the runtime's side is in conflict: the file, or
 * the paths below the directory. No version is ever dropped: it is in the merged tree, or unchanged
 * in the base, or part of a conflict, or was delivered from the local side.
 *
 * A deletion against a change is a conflict that keeps the changed version. If local deleted and
 * the runtime changed, the runtime's version is parked. If the runtime deleted and local changed,
 * the local version stays and nothing is parked (the conflict's runtime has a mode of 0); the user
 * is told.
 *
 * A stuck path (sync/stuck.h) keeps its version in the local tree; a change of it in the runtime is
 * a conflict.
 *
 * If the runtime changed or deleted a guarded file (sync/guard_paths.h), that is held: each side
 * keeps its own version, and there is no conflict. So the local directory becomes `merged`, and the
 * runtime becomes the same except for held paths (sync/held.h). If one side has a folder at the
 * path, the whole folder is held. Deletions of files that the agent moved to a place that is not
 * synced are held too.
 */
enum {
	MERGE_ROWS_MAX = 4000000,     // names compared: a small tree can repeat a folder very often
	MERGE_CONFLICTS_MAX = 100000, // kept in memory
	MERGE_HELD_MAX = 10000,
};

struct conflict {
	struct list link; // merge.conflicts
	char *path;
	struct store_entry base, local, runtime; // a mode of 0: absent
	const char *why; // why the local path is stuck (static); NULL: both sides changed it
	char *file;      // owned; path of the parked runtime version (sync/conflicts.h), or NULL
	bool is_held;    // a held change, parked by held_park: the user has not allowed it
};

enum held_state {
	HELD_WAITS,   // until other questions are answered
	HELD_ASKED,   // it is part of the question at the end of this sync
	HELD_REFUSED, // the user has refused exactly this change
	HELD_STATES,
};

/* A change of the runtime that waits for the user. */
struct held_change {
	enum held_state state; // held_choose
	struct list link;      // merge.held
	char *path;
	struct store_entry base, local, runtime;
	struct store_entry made; // what the local file would become; a mode of 0: deleted
	bool is_whole;           // one side has a folder here, and the whole folder is held
	git_oid base_folder, runtime_folder; // of these sides; may be the empty tree
	char *old_text, *new_text;           // owned, for people; NULL: no text to show (held_read)
};

struct merge_counts {
	size_t added, changed, deleted; // paths, counted from the receiving side
};

struct merge {
	git_oid merged;        // the tree for both sides
	struct list conflicts; // of struct conflict, by path
	size_t conflict_count;
	struct list held; // of struct held_change
	size_t held_count;
	struct list moved; // held_change: deletions that wait without a question (sync/moved.h)
	size_t moved_count;
	bool is_over; // the merge failed: more than MERGE_HELD_MAX in the two lists
	struct merge_counts to_local, to_runtime; // what applying `merged` changes on each side
	size_t text_merges;
};

struct merge_trees {
	git_oid base, local, runtime;
};

struct merge_options {
	bool keeps_deleted;  // ignores the runtime's deletions of paths that local has not changed
	struct stuck *stuck; // borrowed; may be NULL
	/*
	 * The tree of an interrupted delivery to the runtime; borrowed, may be NULL. A path in the
	 * runtime that already matches it does not count as changed by the runtime.
	 */
	const git_oid *delivered;
	const struct guard_paths *guard; // borrowed; may be NULL
	const char *root;                // the local directory; with a guard
	/*
	 * Trees of guarded paths that the user has allowed: `once` with exactly this content,
	 * `always` with any content. Borrowed; may be NULL.
	 */
	const git_oid *allowed_once, *allowed_always;
	const struct id_set *moved; // of moved_find; borrowed; may be NULL
};

/*
 * ERROR_PROTOCOL, naming the path, if a tree contains something that no snapshot may contain;
 * ERROR_LIMIT over one of the limits above. Finish the merge in any case.
 */
bool merge_run(struct merge *merge, struct store *store, const struct merge_trees *trees,
	struct error *err) ATTR_NODISCARD;
bool merge_run_as(struct merge *merge, struct store *store, const struct merge_trees *trees,
	const struct merge_options *options, struct error *err) ATTR_NODISCARD;
void merge_init(struct merge *merge);                  // an empty one
void merge_move(struct merge *to, struct merge *from); // `from` is empty afterwards
/* Frees the conflicts of paths for which `to` already has one. */
void merge_take_conflicts(struct merge *to, struct merge *from);
void merge_finish(struct merge *merge);

#endif
