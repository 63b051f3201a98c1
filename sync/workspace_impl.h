/* SPDX-License-Identifier: MIT */
#ifndef SYNC_WORKSPACE_IMPL_H
#define SYNC_WORKSPACE_IMPL_H

#include <assert.h>
#include <stdatomic.h>

#include "base/soon.h"
#include "sync/checkpoint.h"
#include "sync/round.h"
#include "sync/transport.h"

/* What workspace.c (orders and their ends) and workspace_steps.c share; nobody else includes this.
 */

enum { TOLD_LEFT_MAX = 64 };

/* A blocking step. */
struct work;
typedef bool blocking_step(struct work *work, struct error *err);

/*
 * The data of the steps. A step has it to itself while it runs and sees nothing else of the
 * workspace; the loop's thread has it before and after (workspace_work). A step that outlives the
 * workspace keeps it, with the lock and the guard, until the step ends.
 */
struct work {
	struct pool_job job;
	struct workspace *workspace;      // the loop's
	struct workspace_request request; // owned copies; nobody changes them
	blocking_step *step;              // what the job does
	bool is_ok;
	struct error err;
	atomic_bool is_cancelled; // the loop's thread sets it at any time
	struct store store;
	bool is_open;
	int lock_fd;             // the store's; -1 while it is not locked
	bool is_guarded;         // request.guard has begun
	struct sync_order order; // in hand; the texts are owned
	int tries;               // rounds of the order in hand that have failed
	struct round round;
	struct error look_err;     // ERROR_NONE: the look has not failed
	bool has_target;           // back_to is known
	bool has_gone_back;        // the rollback in hand has been applied here
	struct checkpoint back_to; // of the rollback in hand, as it was when that was asked for
	unsigned checkpoint;
};

struct workspace {
	const struct workspace_request *request; // the work's
	struct work *work;                       // owned; workspace_work
	struct transport *transport;             // NULL before the first sync
	bool is_prepared;
	workspace_sync_done *done; // of the order in hand; NULL: there is none
	void *data;
	void (*next)(struct workspace *workspace);
	bool is_collecting; // the transport is, or is preparing, while a step looks at the local
	                    // directory
	bool is_hurried;    // another broker's lock is not waited for
	git_oid known;      // round.known, while the transport is collecting
	git_oid collected;  // what it has found
	struct error collect_err; // ERROR_NONE: it has not failed
	struct soon start;        // begins the order, once the caller has returned
	ev_timer lock_retry;      // whether another broker has let go of the lock
	long long lock_deadline_ms;
	long long started_ms;
	uint64_t sent_bytes, received_bytes;
	char note[TRANSPORT_NOTE_MAX];      // of the transport's, for the user
	char told_note[TRANSPORT_NOTE_MAX]; // that of the last sync
	char told[ROUND_NOTE_MAX];  // what the last sync has noted: the same is not told again
	struct transport_left left; // in the runtime, by the last collect
	uint64_t told_left[TOLD_LEFT_MAX]; // left.print of what was told, the oldest goes
	size_t told_left_count;
	struct stuck told_busy;        // of round.busy
	struct stuck told_withheld;    // of round.withheld
	struct stuck told_moved;       // and of round.merge.moved
	struct stuck told_undelivered; // of round.undelivered, as long as it is so
	git_oid told_held;             // of round.held
	git_oid allowed_held;          // the same, that the user has allowed once
	bool has_allowed_held;
	git_oid refused_held[ROUND_REFUSED]; // the same, that the user has refused: all; just now
	char **always_held;                  // owned, NULL-terminated: paths; may be NULL
	bool commits_left;                   // by the last collect
	unsigned told_excess;                // round.told_excess of all before
	git_oid refused_deletions; // of the user's: the id of those that stay in the runtime
	bool has_tree;
	git_oid tree;
};

/* While no step runs. */
static inline struct work *workspace_work(const struct workspace *workspace)
{
	assert(!pool_has(&workspace->work->job));
	return workspace->work;
}

/* ---- workspace.c ---- */

/* The order in hand has ended: the lock is let go, the listener is told. */
void workspace_fail(struct workspace *workspace, const struct error *err);
void workspace_succeed(struct workspace *workspace);

/* ---- workspace_steps.c ---- */

void workspace_steps_init(struct workspace *workspace);
void workspace_unlock(struct workspace *workspace);
void work_unlock(struct work *work);

#endif
