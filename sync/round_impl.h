/* SPDX-License-Identifier: MIT */
#ifndef SYNC_ROUND_IMPL_H
#define SYNC_ROUND_IMPL_H

#include "sync/held.h"
#include "sync/id.h"
#include "sync/round.h"

/* Shared by round.c, round_base.c and round_undelivered.c; nobody else includes this. */

/* Whether some paths stay different on the two sides without a conflict. */
static inline bool round_holds(const struct round *round)
{
	return round->spares ||
	       round->merge.held_count + round->merge.moved_count + round->undelivered_count > 0 ||
	       !id_equal(&round->taken, &round->found);
}

/*
 * Adds to the note. A repeated text, from another attempt, is not added twice; a long note is cut.
 */
void round_add_note(struct round *round, const char *format, ...) ATTR_PRINTF(2, 3);

/*
 * Call it with a merge: checks for many deletions, of the agent or of the user, that the user has
 * not agreed to. Fails with ERROR_DENIED, and sets round->asks, if somebody should be asked.
 * Otherwise the agent's deletions are undone (*out_keeps), and the user's are not delivered
 * (round->spares).
 */
bool round_guard_local(struct round *round, struct store *store, bool *out_keeps,
	struct error *err) ATTR_NODISCARD;
bool round_guard_runtime(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/* Notes the current folder of the local directory for the next syncs. */
bool round_keep_root(const struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/* The tree with this version of all held, moved and undelivered changes. */
bool round_graft(const struct round *round, struct store *store, enum held_version version,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/*
 * With round->target set: finds the paths that are not delivered, and sets round->sent to the rest.
 * `stuck` has the paths that could not be changed in the local directory.
 */
bool round_take_undelivered(struct round *round, struct store *store, struct stuck *stuck,
	struct error *err) ATTR_NODISCARD;
void round_drop_undelivered(struct round *round);

/* Notes that from here on the runtime may partly match the target. */
bool round_set_delivery(const struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/*
 * Notes that the merge is in the local directory and goes to the runtime next. deliveries/NAME
 * belongs to the base before, and is removed first. The plan of the apply, which stands for both,
 * is removed last.
 */
bool round_note_applied(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *base,
	struct error *err) ATTR_NODISCARD;

/* Sets known/NAME to `tree`, or removes it if `tree` is the base. */
bool round_set_known(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *base, const git_oid *tree,
	struct error *err) ATTR_NODISCARD;

/*
 * Sets bases/NAME to the tree of the checkpoint with this name, but keeps the old base of held
 * paths. Sets known/NAME to the runtime's tree.
 */
bool round_keep_as_base(struct round *round, struct store *store,
	const struct workspace_request *request, const char *checkpoint,
	struct error *err) ATTR_NODISCARD;

#endif
