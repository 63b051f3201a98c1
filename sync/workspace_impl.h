/* SPDX-License-Identifier: MIT */
#ifndef SYNC_WORKSPACE_IMPL_H
#define SYNC_WORKSPACE_IMPL_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/soon.h"
#include "sync/checkpoint.h"
#include "sync/round.h"
#include "sync/transport.h"

/* What workspace.c (orders and their ends) and workspace_steps.c share; nobody else includes this.
 */

/* A sync that was ordered (sync_order), and who is told of its end. */
struct order {
	struct list link; // workspace.orders
	enum sync_reason reason;
	char *session;  // owned; may be NULL
	char *name;     // owned; may be NULL
	char *rollback; // owned; the checkpoint to go back to, or NULL
	enum sync_deletions deletions;
	git_oid asked;
	workspace_sync_done *done;
	void *data;
};

enum { TOLD_LEFT_MAX = 64 };

/* A blocking step. */
typedef bool blocking_step(struct workspace *workspace, struct error *err);

struct workspace {
	struct workspace_request request;
	struct store store;
	bool is_open;
	int lock_fd;                 // the store's; -1 while it is not locked
	struct transport *transport; // NULL before the first sync
	bool is_prepared;
	struct list orders; // of struct order; the first is being done
	struct pool_job job;
	blocking_step *step; // what the job does
	void (*next)(struct workspace *workspace);
	bool step_is_ok;
	struct error step_err;
	atomic_bool is_cancelled;
	bool is_collecting; // the transport is, or is preparing, while a step looks at the local
	                    // directory
	bool is_hurried;    // another broker's lock is not waited for
	struct error collect_err; // ERROR_NONE: it has not failed
	struct error look_err;    // likewise
	struct round round;
	int tries;
	struct soon start;   // begins the first order, once the caller has returned
	ev_timer lock_retry; // whether another broker has let go of the lock
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
	unsigned checkpoint;
	bool has_target;           // back_to is known
	bool is_guarded;           // request.guard has begun
	bool has_gone_back;        // the rollback in hand has been applied here
	struct checkpoint back_to; // of the rollback in hand, as it was when that was asked for
	bool has_tree;
	git_oid tree;
};

/* ---- workspace.c ---- */

struct order *workspace_order(struct workspace *workspace); // the one in hand

/* The order in hand has ended: the lock is let go, the listener is told. */
void workspace_fail(struct workspace *workspace, const struct error *err);
void workspace_succeed(struct workspace *workspace);

void workspace_drop(struct pool_job *job);

/* ---- workspace_steps.c ---- */

void workspace_steps_init(struct workspace *workspace);
void workspace_unlock(struct workspace *workspace);

#endif
