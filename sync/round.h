/* SPDX-License-Identifier: MIT */
#ifndef SYNC_ROUND_H
#define SYNC_ROUND_H

#include <stdatomic.h>

#include "sync/plan.h"
#include "sync/renames.h"
#include "sync/stuck.h"
#include "sync/workspace.h"

/*
 * The blocking steps of a sync, one after the other on the worker pool
 * (sync/workspace.c calls them). The store's name for what both sides last were is
 * bases/NAME; that for what the runtime was being made since then, until it is the base,
 * deliveries/NAME: of a delivery that was cut off, what has arrived is no change of the agent's.
 * Where something of the runtime's is withheld, known/NAME is what it was with that: a transport
 * begins with it. It is older than the base where a sync was cut off, which costs time alone.
 */
enum { ROUND_NOTE_MAX = 512 };

enum { ROUND_REFUSED = 2 };

struct round {
	git_oid base;      // what both sides were; the empty tree at first
	git_oid delivered; // what the runtime was being made when it was cut off
	bool has_delivered;
	struct plan cut;            // of an apply that was cut off
	bool was_cut;               // and what it did is not part of the base yet
	git_oid local;              // the last snapshot of the local directory
	git_oid known;              // what the runtime was; the base, with what was withheld
	bool has_known;             // the store has a name for it
	git_oid collected;          // what the runtime is
	git_oid runtime;            // of that, what may come here (sync/withheld.h)
	struct stuck withheld;      // paths of the rest
	struct snapshot_view *view; // of the local directory, for the next snapshot; NULL: none
	struct merge merge;         // of the last merge that was applied
	bool has_merge;
	struct renames
		renames; // what was renamed on one side and changed on the other, in that merge
	struct merge earlier;  // only conflicts, of merges that another followed after a delivery
	git_oid target;        // what both sides become,
	git_oid found, taken;  // `collected` and `runtime` of the last merge
	git_oid sent;          // and in the runtime what is withheld and what is held besides
	git_oid held;          // which changes are held (held_tree)
	git_oid asked_held;    // the same, of what the user is to be asked about
	size_t asked_count;    // so many
	git_oid still_refused; // the same, of what the user has refused
	git_oid refused[ROUND_REFUSED]; // before; in the last answer
	bool parks_held;                // the runtime may come to its end
	char **always;   // owned, NULL-terminated: paths that the user always allows from now on
	bool has_always; // and before
	git_oid always_tree;
	bool has_allowed; // the user has allowed this once
	git_oid allowed;
	/*
	 * Of the runtime, in this sync: paths that were in the way of a delivery, those that no
	 * delivery touches any more, and what the last merge would have changed and did not.
	 */
	struct stuck in_way, avoided, undelivered;
	struct list undelivered_changes; // the last of these, of struct held_change
	size_t undelivered_count;        // so many
	const char *why_no_delivery;     // NULL: there is one
	bool began_empty;                // there was no base before this sync
	size_t files;
	size_t kept, followed, gone; // as of struct sync_result
	bool is_first;               // of this broker: nobody has seen the runtime's files go
	enum sync_deletions mode;
	git_oid asked;
	bool asks; // about these deletions: the round has ended with them
	struct deletions deletions;
	const atomic_bool *is_cancelled; // of the merge; borrowed; may be NULL
	bool has_new_root;         // the local directory is none that was noted (sync/root_note.h)
	git_oid refused_deletions; // the id of those that the user wants to stay in the runtime
	bool spares;               // deletions of the user's are not delivered
	struct spared spared;      // which ones
	char note[ROUND_NOTE_MAX]; // for the user
	struct stuck busy;         // files here that were written to whenever they were read
	unsigned told_excess;      // of enum snapshot_excess: what was in a warning already
	char warning[SNAPSHOT_WARNING_MAX];
};

/* What is noted with a checkpoint. */
struct round_keeping {
	const char *reason;
	const char *session;                // may be NULL
	const struct checkpoint_turn *turn; // whose checkpoint it is, without a reason; or NULL
};

void round_init(struct round *round);
void round_finish(struct round *round);

/*
 * A delivery has failed because of these paths. Those for which it would fail again, or which were
 * in the way before, are left as they are from now on: the base becomes the runtime's version of
 * them, so that the next sync tries again. False: there are too many of them.
 */
enum { ROUND_AVOIDED_MAX = 1000 };
bool round_avoid(struct round *round, const struct stuck *paths, bool is_lasting);

/*
 * The next delivery is none, for this reason (static): the local directory gets the merge, and the
 * base is what the runtime is.
 */
void round_deliver_nothing(struct round *round, const char *why);

/*
 * The base, and what was being delivered, from the store. ERROR_SYSTEM where either cannot be read:
 * the text says how one goes on without them.
 */
bool round_read_base(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/*
 * With the base: whether the local directory is the folder that it was at the last sync of this
 * sandbox. ERROR_DENIED with reason WORKSPACE_REPLACED, and round->asks where somebody is to be
 * asked: the id of the question is in round->deletions.
 */
bool round_check_root(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/*
 * With round->base set: begins the view of the local directory for the merge to come. Others may
 * write to the store meanwhile (snapshot_begin).
 */
bool round_begin_view(struct round *round, struct store *store,
	const struct workspace_request *request, const atomic_bool *is_cancelled,
	struct error *err) ATTR_NODISCARD;

/*
 * With round->collected set: snapshot, merge, park, apply, and bases/NAME becomes
 * round->runtime, deliveries/NAME round->target. What is withheld is no part of either, and of
 * that and of what is held the base stays, so that it is a change of the agent's each time. What is
 * stuck becomes a conflict, and of it the base stays. Meanwhile merges/NAME says what is being done
 * (sync/plan.h). ERROR_UNAVAILABLE with reason SYNC_BUSY where the directory changes faster than it
 * is applied; ERROR_DENIED, and round->asks, where the user is to be asked first.
 */
bool round_merge(struct round *round, struct store *store, const struct workspace_request *request,
	const atomic_bool *is_cancelled, struct error *err) ATTR_NODISCARD;

/*
 * Both sides are round->target, but for what is withheld: bases/NAME becomes it, and a checkpoint
 * is kept of it. One of the earlier that cannot be read is noted, and stays.
 */
bool round_keep(struct round *round, struct store *store, const struct workspace_request *request,
	const struct round_keeping *keeping, unsigned *out_checkpoint,
	struct error *err) ATTR_NODISCARD;

/*
 * After a sync: applies the tree of a checkpoint to the local directory. What the
 * runtime is still, round->collected, is what it was sent.
 */
bool round_go_back(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *tree,
	const atomic_bool *is_cancelled, struct error *err) ATTR_NODISCARD;

/*
 * The sandbox of this name ends: what it was is nobody's base any more, so that one that is
 * made anew is not taken for one in which everything was deleted. With the store's lock.
 */
bool round_forget_base(struct store *store, const char *name, struct error *err) ATTR_NODISCARD;

#endif
