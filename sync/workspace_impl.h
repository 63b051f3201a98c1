/* SPDX-License-Identifier: MIT */
#ifndef SYNC_WORKSPACE_IMPL_H
#define SYNC_WORKSPACE_IMPL_H

#include <assert.h>
#include <stdatomic.h>

#include "base/soon.h"
#include "sync/checkpoint.h"
#include "sync/round.h"
#include "sync/transport.h"

/*
 * Shared by workspace.c (orders and their ends) and workspace_steps.c; nobody else includes this.
 */

enum { TOLD_LEFT_MAX = 64 };

/* A blocking step. */
struct work;
typedef bool blocking_step(struct work *work, struct error *err);

/*
 * The data of the steps. While a step runs, only the step may use this data, and the step may use
 * nothing else of the workspace. At other times the data belongs to the loop thread
 * (workspace_work). A step that outlives the workspace keeps it, with the lock and the guard, until
 * the step ends.
 */
struct work {
	struct pool_job job;
	struct workspace *workspace;      // the loop's
	struct workspace_request request; // owned copies; immutable
	blocking_step *step;              // the job's function
	bool is_ok;
	struct error err;
	atomic_bool is_cancelled; // set by the loop thread at any time
	struct store store;
	bool is_open;
	int lock_fd;             // the store's lock; -1 while not locked
	bool is_guarded;         // request.guard has begun
	struct sync_order order; // the current one; the texts are owned
	int tries;               // failed rounds of the current order
	struct round round;
	struct error look_err; // the error of the local look; ERROR_NONE: none
	bool has_target;       // back_to is set
	bool has_gone_back;    // the current rollback was applied here
	struct checkpoint
		back_to; // the checkpoint of the current rollback, as it was when it was requested
	unsigned checkpoint;
};

struct workspace {
	const struct workspace_request *request; // the work's request
	struct work *work;                       // owned; workspace_work
	struct transport *transport;             // NULL before the first sync
	bool is_prepared;
	workspace_sync_done *done; // of the current order; NULL: there is none
	void *data;
	void (*next)(struct workspace *workspace);
	bool is_collecting; // the transport collects or prepares, while a step reads the local
	                    // directory
	bool is_hurried;    // do not wait for another broker's lock
	git_oid known;      // round.known, while the transport is collecting
	git_oid collected;  // the result of the collect
	struct error collect_err; // ERROR_NONE: no failure
	struct soon start;        // begins the order after the caller has returned
	ev_timer lock_retry;      // retries the lock that another broker has
	long long lock_deadline_ms;
	long long started_ms;
	uint64_t sent_bytes, received_bytes;
	char note[TRANSPORT_NOTE_MAX];      // from the transport, for the user
	char told_note[TRANSPORT_NOTE_MAX]; // the transport's note of the last sync
	char told[ROUND_NOTE_MAX];  // the round's note of the last sync, so that it is not repeated
	struct transport_left left; // in the runtime, after the last collect
	uint64_t told_left[TOLD_LEFT_MAX]; // left.print of the notes already shown; the oldest is
	                                   // dropped
	size_t told_left_count;
	struct stuck told_busy;        // paths of round.busy that the user was told about
	struct stuck told_withheld;    // the same of round.withheld
	struct stuck told_moved;       // the same of round.merge.moved
	struct stuck told_undelivered; // undelivered paths that the user was told about
	git_oid told_held;             // the same of round.held
	git_oid allowed_held;          // changes that the user has allowed once
	bool has_allowed_held;
	git_oid refused_held[ROUND_REFUSED]; // changes that the user has refused: [0] all of them,
	                                     // [1] those of the last answer
	char **always_held;                  // owned, NULL-terminated paths; may be NULL
	bool commits_left;                   // after the last collect
	unsigned told_excess;                // round.told_excess of all earlier rounds
	git_oid refused_deletions;           // id of the user's deletions that stay in the runtime
	bool has_tree;
	git_oid tree;
};

/* Only while no step runs. */
static inline struct work *workspace_work(const struct workspace *workspace)
{
	assert(!pool_has(&workspace->work->job));
	return workspace->work;
}

/* ---- workspace.c ---- */

/* The current order has ended: releases the lock and tells the listener. */
void workspace_fail(struct workspace *workspace, const struct error *err);
void workspace_succeed(struct workspace *workspace);

/* ---- workspace_steps.c ---- */

void workspace_steps_init(struct workspace *workspace);
void workspace_unlock(struct workspace *workspace);
void work_unlock(struct work *work);

#endif
