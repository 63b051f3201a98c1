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
 * Keeps one workspace in step with a sandbox. It has a store, the local directory and the runtime
 * root. A sync has these steps:
 *
 *     lock, collect the runtime, take a snapshot of the local directory, merge the two against
 *     their last common tree, park conflicts, apply to the local directory, deliver to the runtime,
 *     note the new common tree.
 *
 * The notes make it safe to interrupt any step. Once the local directory has the merge, the
 * runtime's snapshot becomes the base, because everything in it is here. Once the runtime has the
 * merge too, the merge becomes the base. Files that an interrupted delivery has already brought
 * there do not count as the agent's work.
 *
 * If a file changes on either side between snapshot and apply, another round takes up the change.
 * After SYNC_ROUNDS_MAX rounds the sync fails; nothing is lost, and it can be tried again. If two
 * rounds could not change a path here (an ignored file is in its way, or permission is missing), it
 * becomes a conflict, so that the others go on. A path that cannot be changed in the runtime stays
 * unchanged there, and a note names it.
 *
 * Loop thread. Blocking work is done on the pool; the store is locked against other brokers
 * meanwhile. A sync calls `done` exactly once, never before it returns, or not at all if the
 * workspace is destroyed first. One sync at a time: the keeper queues the orders
 * (broker/ledger/keeper.h).
 */
enum {
	SYNC_ROUNDS_MAX = 3,
	SYNC_NAME_MAX = 128,
	/*
	 * From this many deletions in the runtime on, or half of the files, the user is asked
	 * first.
	 */
	SYNC_DELETIONS_MAX = 200,
	/*
	 * Fewer deletions are always followed, except by the first sync, because the root may have
	 * been made again.
	 */
	SYNC_DELETIONS_MIN = 10,
};

/* In the store's folder; whoever syncs locks it (flock). */
#define WORKSPACE_LOCK_NAME "acp-broker.lock"

enum sync_reason { SYNC_REASON_START, SYNC_REASON_TURN, SYNC_REASON_STOP, SYNC_REASON_CRASH };

const char *sync_reason_name(enum sync_reason reason); // "start", "turn", "stop", "crash"

/*
 * Keeps others from working in the directory while it goes back to a checkpoint: from `begin`,
 * after the store's lock was taken, until `end`.
 */
struct rollback_guard {
	/* On the pool: blocks, and gives up soon after *is_cancelled is set. False: not now. */
	bool (*begin)(
		struct rollback_guard *guard, const atomic_bool *is_cancelled, struct error *err);
	void (*end)(struct rollback_guard *guard); // after a successful begin
	void (*destroy)(struct rollback_guard *guard);
};

/*
 * Loop, pool and sandbox are borrowed until the workspace is destroyed, the pool until its jobs
 * have ended; the texts are copied. A job may outlive the sandbox and must not use it.
 */
struct workspace_request {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;
	bool is_confined;         // the agent in the sandbox is confined; set by workspace_create
	const char *store_folder; // created if missing
	const char *name;         // identifies the sandbox among those of this workspace: [a-z0-9-]
	const char *local_root;
	const char *runtime_root;
	const char *home;                            // the user's; may be NULL
	const char *const *include, *const *exclude; // NULL-terminated pathspecs; may be NULL
	const struct guard_paths *guard_paths;       // copied; NULL: no path is guarded
	struct snapshot_limits limits;
	uint64_t big_file_bytes;
	transport_create *create_transport;
	const struct transport_tools
		*tools;            // borrowed until the workspace is destroyed; may be NULL
	long long timeout_ms;      // of a transfer without any progress
	long long lock_timeout_ms; // of waiting for another broker's sync of the same workspace
	size_t max_checkpoints;
	long long checkpoint_age_ms;  // 0: no limit
	struct rollback_guard *guard; // owned by the workspace from now on; may be NULL
};

/* What a sync did; valid until done returns. */
struct sync_result {
	enum sync_reason reason;
	git_oid tree;         // the tree of both sides now
	git_oid runtime_tree; // the collected tree, which is in `tree`: the receipt
	size_t files;         // in the local snapshot
	struct merge_counts to_local, to_runtime;
	size_t text_merges;
	const struct list *conflicts; // of struct conflict
	size_t conflict_count;
	const struct list *held; // of struct held_change: changes that wait for the user
	size_t held_count;
	git_oid held_tree;     // identifies the changes for the question to the user (held_choose)
	bool is_held_news;     // the user was not told about them yet
	bool is_held_answered; // the user has answered: refused, or the next sync brings it
	size_t kept;           // number of deletions in the runtime, if too many to follow
	size_t followed;       // such deletions that were followed, as ordered
	size_t gone; // local deletions that are not renames; not looked at below SYNC_DELETIONS_MIN
	size_t left; // paths that exist only in the runtime: unreadable, or withheld
	             // (sync/withheld.h)
	const char *first_left; // the first of these, for people; "" for none
	bool commits_left; // commits of the agent that could not be taken exist only in the runtime
	uint64_t sent_bytes, received_bytes;
	long long duration_ms;
	unsigned checkpoint; // the number of the checkpoint with this tree
	const char *note;    // a message for the user, once; "" for none
};

struct workspace;

typedef void workspace_sync_done(
	void *data, const struct sync_result *result, const struct error *err);

struct workspace *workspace_create(const struct workspace_request *request);

/* NULL is fine. Does not wait: jobs on the pool end by themselves, without a callback. */
void workspace_destroy(struct workspace *workspace);

/* What to do about more deletions in the runtime than are followed without a question. */
enum sync_deletions {
	SYNC_DELETIONS_KEEP,   // the deleted files are restored
	SYNC_DELETIONS_ASK,    // the sync ends before anything changes: workspace_question
	SYNC_DELETIONS_FOLLOW, // follows the deletions in question; others are asked about
};

/* How a sync relates to a turn of its session; names the checkpoint. */
enum sync_turn { SYNC_NO_TURN, SYNC_BEFORE_TURN, SYNC_AFTER_TURN };

/* What a sync shall do; the texts are copied. */
struct sync_order {
	enum sync_reason reason;
	const char *session; // noted with the checkpoint; may be NULL
	const char
		*name; // of the checkpoint; NULL: the reason's name; with a turn: its first words
	enum sync_turn turn; // needs a session
	unsigned turn_least; // its number is at least this (struct checkpoint_turn)
	/*
	 * The checkpoint to go back to (named as for checkpoint_find), looked up before anything is
	 * done. The sync comes first, so that the current state has a checkpoint. NULL: no
	 * rollback.
	 */
	const char *rollback;
	enum sync_deletions deletions;
	git_oid asked; // SYNC_DELETIONS_FOLLOW: the id of the question that got a yes
};

/* Copies an order with its texts; free it with sync_order_finish. */
struct sync_order sync_order_copy(const struct sync_order *order);
void sync_order_finish(struct sync_order *order);

/*
 * Syncs the workspace, and keeps the resulting tree as a checkpoint. The previous sync must have
 * called its `done`.
 */
void workspace_sync(struct workspace *workspace, const struct sync_order *order,
	workspace_sync_done *done, void *data);

enum held_answer {
	HELD_NO,     // it stays held; the user is asked again only if it changes
	HELD_ONCE,   // the next sync brings it, if it is still the same
	HELD_ALWAYS, // also every later change of these paths, in this workspace
};

/*
 * Records the user's answer about held changes (sync_result.held_tree). Copies their paths, which
 * are NULL-terminated. A sync must follow.
 */
void workspace_answer_held(struct workspace *workspace, const git_oid *tree, char *const *paths,
	enum held_answer answer);

/* From now on no sync waits for another broker's sync: it fails instead, and says so. */
void workspace_hurry(struct workspace *workspace);

/*
 * Call it inside done, with an error: returns the question with which the sync ended, or NULL for a
 * failure. The answer is another order. Borrowed.
 */
const struct deletions *workspace_question(const struct workspace *workspace);

/* How the files are transferred (transport_name); NULL before the first sync. */
const char *workspace_transport(const struct workspace *workspace);

/* The tree of both sides after this broker's last sync; NULL before the first. */
const git_oid *workspace_tree(const struct workspace *workspace);

#endif
