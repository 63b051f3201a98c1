/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RENAMES_H
#define SYNC_RENAMES_H

#include "sync/guard_paths.h"
#include "sync/merge.h"
#include "sync/rename_match.h"
#include "sync/settled.h"

/*
 * Finds files that one side renamed while the other changed them. The merge works by path. So
 * before the merge, renames_align moves these files to their new place in the base and in the other
 * side's tree. Then a change follows its file, and if both sides changed the file, it is merged, or
 * is in conflict, at the new place.
 *
 * - A file that is gone on one side and exists there under another name, with equal content or
 *   SIMILAR_LEAST percent of it (sync/rename_match.h), if the other side has changed it.
 * - A file that both sides renamed to the same name, with different contents.
 * - A file that one side added in a folder that the other side renamed as a whole.
 *
 * The rename of a single path is ignored if it is a link, if another file is at its new or its old
 * place, or if one of the two paths is guarded (sync/guard_paths.h) or withheld (sync/withheld.h).
 * Over the limits all renames are ignored.
 */
enum {
	/* Above these limits no change follows a rename. */
	RENAMES_NAMES_MAX = 400000,   // names compared
	RENAMES_PATHS_MAX = 64 << 20, // bytes of the missing and new paths
	RENAMES_MAX = 5000,           // files that might follow
};

enum rename_side { RENAME_BASE, RENAME_LOCAL, RENAME_RUNTIME, RENAME_SIDES };

enum rename_by { RENAME_BY_LOCAL, RENAME_BY_RUNTIME, RENAME_BY_BOTH };

struct rename {
	char *from, *to; // owned
	enum rename_by by;
	struct store_entry base;  // at `from`; a mode of 0: it was added
	struct store_entry other; // at `from`, on the side that did not rename it
};

struct renames {
	struct rename *items; // owned
	size_t count;
};

struct renames_request {
	struct merge_trees trees;
	const git_oid *delivered; // as in merge_options; may be NULL
	struct stuck *stuck;      // paths that are excluded, as old or new place; may be NULL
	const struct guard_paths *guard; // may be NULL
	const char *root; // the local directory; NULL: no path is guarded or withheld
	const atomic_bool *is_cancelled; // may be NULL: ERROR_CANCELLED then
};

/* Fails like merge_run. Finish `renames` in any case. */
bool renames_find(struct renames *renames, struct store *store,
	const struct renames_request *request, struct error *err) ATTR_NODISCARD;
void renames_finish(struct renames *renames); // leaves it empty

/* Writes the list as a blob, and reads it back; finish the read one in any case. */
bool renames_put(const struct renames *renames, struct store *store, git_oid *out_id,
	struct error *err) ATTR_NODISCARD;
bool renames_read(struct renames *renames, struct store *store, const git_oid *id,
	struct error *err) ATTR_NODISCARD;

/* The tree of a side as the merge should see it. */
bool renames_align(const struct renames *renames, struct store *store, enum rename_side side,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/*
 * Moves the paths of an aligned base back to their old names; sync/settled.h made that base from
 * the old one with the same `left`. Files that the runtime renamed keep the new name if it was
 * applied. The trees are those of the round.
 */
bool renames_restore(const struct renames *renames, struct store *store,
	const struct settled_trees *trees, struct stuck *left, git_oid *base,
	struct error *err) ATTR_NODISCARD;

/*
 * The first says whether files of the local directory move. The second adds these files to `tree`
 * at their old places too, except for files whose new place is in `left` (NULL: adds all of them).
 */
bool renames_move_local(const struct renames *renames);
bool renames_keep_old(const struct renames *renames, struct store *store, struct stuck *left,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/* Whether a rename affects a change that waits for the user. */
bool renames_touch(const struct renames *renames, const struct list *held);

/*
 * Finds the files that `from` has and `to` lacks, by path. A file with a match exists in `to` under
 * another name, maybe edited; each matches a different file. Unreadable files have no match. Over
 * the limits there are no matches. Finish `out`.
 */
void renames_find_moved(struct rename_files *out, struct store *store, const git_oid *from,
	const git_oid *to, const atomic_bool *is_cancelled);

#endif
