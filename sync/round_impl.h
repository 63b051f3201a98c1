/* SPDX-License-Identifier: MIT */
#ifndef SYNC_ROUND_IMPL_H
#define SYNC_ROUND_IMPL_H

#include "sync/held.h"
#include "sync/id.h"
#include "sync/round.h"

/* What round.c, round_base.c and round_undelivered.c share; nobody else includes this. */

/* Whether there is something that stays as it is on both sides, without a conflict. */
static inline bool round_holds(const struct round *round)
{
	return round->spares ||
	       round->merge.held_count + round->merge.moved_count + round->undelivered_count > 0 ||
	       !id_equal(&round->taken, &round->found);
}

/* What is noted already - this is another try - is not noted again; too much is cut. */
void round_add_note(struct round *round, const char *format, ...) ATTR_PRINTF(2, 3);

/*
 * With a merge: many deletions of the agent's, or of the user's, that the user has not said yes
 * to. ERROR_DENIED, and round->asks, where somebody is to be asked. Otherwise the agent's are to be
 * given back (*out_keeps), and the user's are not made in the runtime (round->spares).
 */
bool round_guard_local(struct round *round, struct store *store, bool *out_keeps,
	struct error *err) ATTR_NODISCARD;
bool round_guard_runtime(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/* The folder that the local directory is now is the one for the next syncs. */
bool round_keep_root(const struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/* The tree with this version of all that. */
bool round_graft(const struct round *round, struct store *store, enum held_version version,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/*
 * With round->target: what of it is not delivered, and round->sent, which is the rest. `stuck` is
 * what the local directory could not take.
 */
bool round_take_undelivered(struct round *round, struct store *store, struct stuck *stuck,
	struct error *err) ATTR_NODISCARD;
void round_drop_undelivered(struct round *round);

/* From here on the runtime may be in part what it is to become. */
bool round_set_delivery(const struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/*
 * The merge is in the local directory, and goes to the runtime next. What was delivered is of the
 * base before, and goes first; the plan of the apply, which stands for both, goes last.
 */
bool round_note_applied(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *base,
	struct error *err) ATTR_NODISCARD;

/* known/NAME becomes `tree`, or goes where that is the base. */
bool round_set_known(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *base, const git_oid *tree,
	struct error *err) ATTR_NODISCARD;

/*
 * bases/NAME becomes what the checkpoint of this name keeps, but of what is held it stays what it
 * was; and known/NAME what the runtime is.
 */
bool round_keep_as_base(struct round *round, struct store *store,
	const struct workspace_request *request, const char *checkpoint,
	struct error *err) ATTR_NODISCARD;

#endif
