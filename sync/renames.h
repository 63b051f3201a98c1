/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RENAMES_H
#define SYNC_RENAMES_H

#include "sync/guard_paths.h"
#include "sync/merge.h"
#include "sync/rename_match.h"
#include "sync/settled.h"

/*
 * What one side has renamed while the other changed it. Before the merge, which goes by path, the
 * base and the other side get these files at their new place (renames_align): so a change follows
 * the file, and what both have changed merges or is a conflict there.
 *
 * - A file that is gone on one side and stands there under another name, with equal content or
 *   SIMILAR_LEAST percent of it (sync/rename_match.h), where the other side has changed it.
 * - A file that both have renamed to the same name, and that differs.
 * - A file that one side has added in a folder that the other side has renamed as a whole.
 *
 * It is as without this, for each path alone: where something is in the way of the new place or
 * has taken the old one; where a path is guarded (sync/guard_paths.h) or withheld
 * (sync/withheld.h), the old or the new one; for links; and over the limits.
 */
enum {
	/* Where there is more than this, nothing follows. */
	RENAMES_NAMES_MAX = 400000,   // names looked at
	RENAMES_PATHS_MAX = 64 << 20, // bytes of the paths that are gone or new
	RENAMES_MAX = 5000,           // files that might follow
};

enum rename_side { RENAME_BASE, RENAME_LOCAL, RENAME_RUNTIME, RENAME_SIDES };

enum rename_by { RENAME_BY_LOCAL, RENAME_BY_RUNTIME, RENAME_BY_BOTH };

struct rename {
	char *from, *to; // owned
	enum rename_by by;
	struct store_entry base;  // at `from`; a mode of 0: it was added
	struct store_entry other; // at `from`, on the side that has not renamed it
};

struct renames {
	struct rename *items; // owned
	size_t count;
};

struct renames_request {
	struct merge_trees trees;
	const git_oid *delivered;        // as of merge_options; may be NULL
	struct stuck *stuck;             // paths that nothing follows from or to; may be NULL
	const struct guard_paths *guard; // may be NULL
	const char *root; // the local directory; NULL: nothing is guarded or withheld
	const atomic_bool *is_cancelled; // may be NULL: ERROR_CANCELLED then
};

/* As merge_run fails. To be finished in any case. */
bool renames_find(struct renames *renames, struct store *store,
	const struct renames_request *request, struct error *err) ATTR_NODISCARD;
void renames_finish(struct renames *renames); // it is empty then

/* The list as a blob, and from one; that is to be finished in any case. */
bool renames_put(const struct renames *renames, struct store *store, git_oid *out_id,
	struct error *err) ATTR_NODISCARD;
bool renames_read(struct renames *renames, struct store *store, const git_oid *id,
	struct error *err) ATTR_NODISCARD;

/* The tree of a side as the merge is to see it. */
bool renames_align(const struct renames *renames, struct store *store, enum rename_side side,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/*
 * Takes an aligned base, which sync/settled.h has made of the one before with the same `left`, back
 * to the old names. What the runtime has renamed has the new one once it was applied. The trees are
 * those of the round.
 */
bool renames_restore(const struct renames *renames, struct store *store,
	const struct settled_trees *trees, struct stuck *left, git_oid *base,
	struct error *err) ATTR_NODISCARD;

/* Whether files of the local directory move, and `tree`, which has those of them whose new place
 * is none of `left` (NULL: all of them), at the old one, too. */
bool renames_move_local(const struct renames *renames);
bool renames_keep_old(const struct renames *renames, struct store *store, struct stuck *left,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/* Whether one of them has to do with a change that waits for the user. */
bool renames_touch(const struct renames *renames, const struct list *held);

/*
 * The files that `from` has and `to` has not, by path. Those with a match stand in `to` under
 * another name, maybe edited: each has a file of its own there. What cannot be read has no match.
 * Over the limits there are none. `out` is to be finished.
 */
void renames_find_moved(struct rename_files *out, struct store *store, const git_oid *from,
	const git_oid *to, const atomic_bool *is_cancelled);

#endif
