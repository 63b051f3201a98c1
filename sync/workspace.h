/* SPDX-License-Identifier: MIT */
#ifndef SYNC_WORKSPACE_H
#define SYNC_WORKSPACE_H

#include <ev.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "providers/provider.h"
#include "sync/deletions.h"
#include "sync/merge.h"
#include "sync/snapshot.h"
#include "sync/transport.h"

/*
 * One workspace kept in step with a sandbox: a store, the local directory, the
 * runtime root, and the one way to sync them:
 *
 *     lock, collect the runtime, snapshot the local directory, merge the two
 *     against what both were last, park what is in conflict, apply to the local
 *     directory, deliver to the runtime, note what both are now.
 *
 * What is noted makes every step safe to be cut off: once the local directory has
 * the merge, the runtime's snapshot becomes the base - everything of it is here -,
 * and once the runtime has it too, the merge itself does. What a delivery that was cut off has
 * brought there already is not taken for the agent's work.
 *
 * A file that changes between snapshot and apply, on either side, is taken up by
 * another round, of which there are SYNC_ROUNDS_MAX; then the sync fails and can be
 * tried again, with nothing lost. A path that two rounds could not change here - an ignored
 * file is in its way, permission is missing - becomes a conflict, so that the others go on. One
 * that cannot be changed in the runtime stays as it is there, and a note names it.
 *
 * Loop thread; what blocks is done on the pool, and the store is locked against
 * other brokers meanwhile. A sync raises its end exactly once and not before
 * it returns, or not at all once the workspace was destroyed. One sync at a time: the keeper has
 * the queue of orders (broker/ledger/keeper.h).
 */
enum {
	SYNC_ROUNDS_MAX = 3,
	SYNC_NAME_MAX = 128,
	/* As many deletions of the runtime's, or of half of the files, are not followed unasked. */
	SYNC_DELETIONS_MAX = 200,
	/* Fewer are always followed, but by the first sync: a root may have been made anew. */
	SYNC_DELETIONS_MIN = 10,
};

/* In the store's folder: locked (flock) by who syncs. */
#define WORKSPACE_LOCK_NAME "acp-broker.lock"

enum sync_reason { SYNC_REASON_START, SYNC_REASON_TURN, SYNC_REASON_STOP, SYNC_REASON_CRASH };

const char *sync_reason_name(enum sync_reason reason); // "start", "turn", "stop", "crash"

/*
 * Keeps others from working in the directory while it is brought back to a checkpoint: from begin,
 * behind the store's lock, until end.
 */
struct rollback_guard {
	/* On the pool: blocks, and gives up soon once *is_cancelled. False: not now. */
	bool (*begin)(
		struct rollback_guard *guard, const atomic_bool *is_cancelled, struct error *err);
	void (*end)(struct rollback_guard *guard); // after a begin that went well
	void (*destroy)(struct rollback_guard *guard);
};

/*
 * Loop, pool and sandbox are borrowed until the workspace is destroyed, the pool until
 * what runs on it has ended; the texts are copied.
 */
struct workspace_request {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;
	const char *store_folder; // made where it is missing
	const char *name;         // of the sandbox among those of this workspace: [a-z0-9-]
	const char *local_root;
	const char *runtime_root;
	const char *home;                            // the user's; may be NULL
	const char *const *include, *const *exclude; // NULL-terminated pathspecs; may be NULL
	const struct guard_paths *guard_paths;       // copied; NULL: none is guarded
	struct snapshot_limits limits;
	uint64_t big_file_bytes;
	transport_create *create_transport;
	const struct transport_tools
		*tools;            // borrowed until the workspace is destroyed; may be NULL
	long long timeout_ms;      // a transfer without any progress
	long long lock_timeout_ms; // another broker's sync of the same workspace
	size_t max_checkpoints;
	long long checkpoint_age_ms;  // 0: any
	struct rollback_guard *guard; // becomes the workspace's; may be NULL
};

/* What a sync has done; valid until done returns. */
struct sync_result {
	enum sync_reason reason;
	git_oid tree;         // what both sides are now
	git_oid runtime_tree; // what was collected and is in `tree`: the receipt
	size_t files;         // in the local snapshot
	struct merge_counts to_local, to_runtime;
	size_t text_merges;
	const struct list *conflicts; // of struct conflict
	size_t conflict_count;
	const struct list *held; // of struct held_change: what waits for the user
	size_t held_count;
	git_oid held_tree;     // which of these the user is to be asked about (held_choose)
	bool is_held_news;     // it was not told yet
	bool is_held_answered; // by the user: refused, or the next sync brings it
	size_t kept;           // deletions in the runtime that were too many to follow
	size_t followed;       // the same, that were followed as the order said
	size_t gone; // of what was deleted here, so much has no other name here either; fewer than
	             // SYNC_DELETIONS_MIN are not looked at
	size_t left; // what could not be taken from the runtime, or was withheld
	             // (sync/withheld.h), and is there alone
	const char *first_left; // of these, for people; "" for none
	bool commits_left;      // commits of the agent's that could not be taken are there alone
	uint64_t sent_bytes, received_bytes;
	long long duration_ms;
	unsigned checkpoint; // the number of the one that has this tree
	const char *note;    // what the user should be told once; "" for nothing
};

struct workspace;

typedef void workspace_sync_done(
	void *data, const struct sync_result *result, const struct error *err);

struct workspace *workspace_create(const struct workspace_request *request);

/* NULL is fine. Waits for nothing: what runs on the pool ends by itself, unheard. */
void workspace_destroy(struct workspace *workspace);

/* What becomes of more deletions in the runtime than are followed unasked. */
enum sync_deletions {
	SYNC_DELETIONS_KEEP,   // what was deleted is given back
	SYNC_DELETIONS_ASK,    // the sync ends before they change anything: workspace_question
	SYNC_DELETIONS_FOLLOW, // those that were asked about are done here; others are asked about
};

/* What a sync is to a turn of its session: the checkpoint is named after that. */
enum sync_turn { SYNC_NO_TURN, SYNC_BEFORE_TURN, SYNC_AFTER_TURN };

/* What is wanted of a sync; the texts are copied. */
struct sync_order {
	enum sync_reason reason;
	const char *session; // noted with the checkpoint; may be NULL
	const char *name;    // of the checkpoint; NULL: the reason's; of a turn: its first words
	enum sync_turn turn; // with a session
	unsigned turn_least; // its number, or a lower one (struct checkpoint_turn)
	/*
	 * The checkpoint to go back to (checkpoint_find says how it is named), as it is
	 * before anything is done: the sync comes first, so that there is a checkpoint
	 * of what is now. NULL: none.
	 */
	const char *rollback;
	enum sync_deletions deletions;
	git_oid asked; // SYNC_DELETIONS_FOLLOW: the id of what the yes was about
};

/* A copy whose texts are its own, until sync_order_finish. */
struct sync_order sync_order_copy(const struct sync_order *order);
void sync_order_finish(struct sync_order *order);

/* Syncs, and keeps what both sides are then as a checkpoint. The sync before has raised its end. */
void workspace_sync(struct workspace *workspace, const struct sync_order *order,
	workspace_sync_done *done, void *data);

enum held_answer {
	HELD_NO,     // it stays held, and is not asked about as long as it is the same
	HELD_ONCE,   // the next sync brings it, where it is still that
	HELD_ALWAYS, // and whatever these paths become, in this workspace
};

/*
 * The user's answer about what was held (sync_result.held_tree): the paths of that,
 * NULL-terminated, are copied. A sync has to follow.
 */
void workspace_answer_held(struct workspace *workspace, const git_oid *tree, char *const *paths,
	enum held_answer answer);

/* From now on no sync waits for another broker's: one that would fails, and says so. */
void workspace_hurry(struct workspace *workspace);

/*
 * Inside done, with an error: what the sync ends with to ask about; the answer is another order.
 * NULL where it is a failure. Borrowed.
 */
const struct deletions *workspace_question(const struct workspace *workspace);

/* What the files travel by (transport_name); NULL before the first sync. */
const char *workspace_transport(const struct workspace *workspace);

/* What both sides were after the last sync of this broker's; NULL before the first. */
const git_oid *workspace_tree(const struct workspace *workspace);

#endif
