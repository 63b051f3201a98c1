/* SPDX-License-Identifier: MIT */
#include "sync/workspace_impl.h"

#include <assert.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/id.h"
#include "sync/store_end.h"
#include "sync/store_lock.h"

enum { LOCK_RETRY_MS = 50 };

/* ---- blocking steps, on the pool ---- */

static void run_step(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	work->is_ok = work->step(work, &work->err);
}

static void on_step_done(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	if (work->is_ok) {
		work->workspace->next(work->workspace);
	} else {
		workspace_fail(work->workspace, &work->err);
	}
}

static bool block(
	struct workspace *workspace, blocking_step *step, void (*next)(struct workspace *workspace))
{
	struct error err;
	struct work *work = workspace_work(workspace);
	work->step = step;
	workspace->next = next;
	if (pool_submit(workspace->request->pool, &work->job, &err)) {
		return true;
	}
	workspace_fail(workspace, &err);
	return false;
}

static bool open_store(struct work *work, struct error *err)
{
	const struct workspace_request *request = &work->request;
	if (work->is_open) {
		return true;
	}
	if (!snapshot_root_check(request->local_root, request->home, err) ||
		!store_open(&work->store, request->store_folder, request->big_file_bytes, err)) {
		return false;
	}
	store_note_root(&work->store, request->local_root);
	work->is_open = true;
	return true;
}

/* The meaning of -1, and whether a checkpoint exists, change with the sync that comes first. */
static bool find_target(struct work *work, struct error *err)
{
	const char *rollback = work->order.rollback;
	if (rollback && !work->has_target) {
		work->has_target = checkpoint_find(&work->store, rollback, &work->back_to, err);
		return work->has_target;
	}
	return true;
}

static bool begin_guard(struct work *work, struct error *err)
{
	struct rollback_guard *guard = work->request.guard;
	if (guard && work->order.rollback && !work->is_guarded) {
		work->is_guarded = guard->begin(guard, &work->is_cancelled, err);
		return work->is_guarded;
	}
	return true;
}

static bool read_base(struct work *work, struct error *err)
{
	struct round *round = &work->round;
	bool is_read = find_target(work, err) && begin_guard(work, err) &&
	               round_read_base(round, &work->store, &work->request, err);
	if (is_read && work->tries == 0) {
		round->began_empty = id_equal(&round->base, &store_empty_tree);
	}
	return is_read && round_check_root(round, &work->store, &work->request, err);
}

/* If it fails, the code that waits for the transport finds the error. */
static bool look(struct work *work, struct error *err)
{
	struct error why;
	if (!round_begin_view(
		    &work->round, &work->store, &work->request, &work->is_cancelled, &why)) {
		work->look_err = why;
	}
	return true;
}

static bool merge_trees(struct work *work, struct error *err)
{
	return round_merge(&work->round, &work->store, &work->request, &work->is_cancelled, err);
}

static bool keep_target(struct work *work, struct error *err)
{
	const struct sync_order *order = &work->order;
	const char *reason = order->reason == SYNC_REASON_TURN
	                             ? "sync" // one that the user asked for
	                             : sync_reason_name(order->reason);
	struct checkpoint_turn turn = {.is_before = order->turn == SYNC_BEFORE_TURN,
		.least = order->turn_least,
		.words = order->name};
	char back[64];
	if (order->rollback) {
		text_format(back, sizeof(back), "%s rollback to %u",
			work->has_gone_back ? "after" : "before", work->back_to.number);
		reason = back;
	} else if (order->name) {
		reason = order->name;
	}
	struct round_keeping keeping = {
		reason, order->session, order->turn == SYNC_NO_TURN ? NULL : &turn};
	return round_keep(
		&work->round, &work->store, &work->request, &keeping, &work->checkpoint, err);
}

static bool go_back(struct work *work, struct error *err)
{
	work->has_gone_back = true;
	return round_go_back(&work->round, &work->store, &work->request, &work->back_to.tree,
		&work->is_cancelled, err);
}

/* ---- the steps, in order ---- */

static void collect(struct workspace *workspace);
static void deliver(struct workspace *workspace);

static void on_kept(struct workspace *workspace)
{
	const struct work *work = workspace_work(workspace);
	if (work->order.rollback && !work->has_gone_back) {
		block(workspace, go_back, deliver);
	} else {
		workspace_succeed(workspace);
	}
}

static const char *why_no_delivery(bool is_full, bool is_lasting)
{
	if (is_full) {
		return "there is no space in the sandbox";
	}
	return is_lasting ? "it cannot be replaced in the sandbox"
	                  : "files change there faster than they can be synced";
}

/*
 * A delivery failed. Tries once more without the paths that were in its way; after that delivers
 * nothing, while the rest of the sync is done. If the sandbox would then be empty, the sync fails.
 */
static bool tries_again(struct workspace *workspace, const struct transport_delivered *delivered,
	const struct error *err)
{
	struct work *work = workspace_work(workspace);
	struct round *round = &work->round;
	bool is_full = error_has_reason(err, "DISK_FULL");
	if ((!is_full && !error_has_reason(err, "RUNTIME_CHANGED")) || work->has_gone_back ||
		round->why_no_delivery) {
		return false;
	}
	size_t before = round->avoided.count;
	bool is_lasting = is_full || (delivered && delivered->is_lasting);
	bool fits =
		!delivered || !delivered->stuck || round_avoid(round, delivered->stuck, is_lasting);
	bool is_no_use = is_lasting && round->avoided.count == before;
	if (++work->tries < SYNC_ROUNDS_MAX && fits && !is_no_use) {
		return true;
	}
	round_deliver_nothing(round, why_no_delivery(is_full, is_lasting));
	return !round->began_empty;
}

static void on_delivered(
	void *data, const struct transport_delivered *delivered, const struct error *err)
{
	struct workspace *workspace = data;
	if (!err) {
		workspace->sent_bytes += delivered->sent_bytes;
		block(workspace, keep_target, on_kept);
		return;
	}
	if (tries_again(workspace, delivered, err)) {
		block(workspace, read_base, collect);
		return;
	}
	workspace_fail(workspace, err);
}

static void deliver(struct workspace *workspace)
{
	const struct round *round = &workspace_work(workspace)->round;
	bool is_same = id_equal(&round->collected, &round->sent);
	if (is_same && !transport_follows(workspace->transport)) {
		block(workspace, keep_target, on_kept);
		return;
	}
	transport_deliver(
		workspace->transport, &round->collected, &round->sent, on_delivered, workspace);
}

/* Whichever ends last, the transport's collect or the look, continues. */
static void join(struct workspace *workspace)
{
	if (workspace->is_collecting || pool_has(&workspace->work->job)) {
		return;
	}
	struct work *work = workspace_work(workspace);
	work->is_cancelled = false;
	if (workspace->collect_err.code != ERROR_NONE) {
		workspace_fail(workspace, &workspace->collect_err);
	} else if (work->look_err.code != ERROR_NONE) {
		workspace_fail(workspace, &work->look_err);
	} else {
		work->round.collected = workspace->collected;
		block(workspace, merge_trees, deliver);
	}
}

static void on_collected(
	void *data, const struct transport_collected *collected, const struct error *err)
{
	struct workspace *workspace = data;
	workspace->is_collecting = false;
	if (err) {
		workspace->collect_err = *err;
		workspace->work->is_cancelled = true; // its result is not needed
		join(workspace);
		return;
	}
	workspace->received_bytes += collected->received_bytes;
	workspace->collected = collected->tree;
	/*
	 * Keeps earlier notes: those of another attempt, or of a failed sync, were not shown yet.
	 */
	transport_note_add(workspace->note, collected->note);
	workspace->left = collected->left;
	workspace->commits_left = collected->commits_left;
	join(workspace);
}

static void on_prepared(void *data, const struct error *err)
{
	struct workspace *workspace = data;
	if (err) {
		on_collected(workspace, NULL, err);
		return;
	}
	workspace->is_prepared = true;
	transport_hold(workspace->transport, pool_has(&workspace->work->job));
	transport_collect(workspace->transport, &workspace->known, on_collected, workspace);
}

static void on_looked(struct workspace *workspace)
{
	transport_hold(workspace->transport, false);
	join(workspace);
}

/*
 * The snapshot of the local directory does not depend on the runtime: the two are read at the same
 * time, unless they would disturb each other.
 */
static void collect(struct workspace *workspace)
{
	workspace->collect_err.code = ERROR_NONE;
	workspace_work(workspace)->look_err.code = ERROR_NONE;
	workspace->known = workspace_work(workspace)->round.known;
	workspace->is_collecting = true;
	if (!block(workspace, look, on_looked)) {
		return;
	}
	if (workspace->is_prepared) {
		on_prepared(workspace, NULL);
	} else {
		transport_prepare(workspace->transport, on_prepared, workspace);
	}
}

static void prepare(struct workspace *workspace)
{
	const struct workspace_request *request = workspace->request;
	if (!workspace->transport) {
		workspace->transport = request->create_transport(&(struct transport_request){
			.loop = request->loop,
			.pool = request->pool,
			.sandbox = request->sandbox,
			.store = &workspace_work(workspace)->store,
			.local_root = request->local_root,
			.runtime_root = request->runtime_root,
			.name = request->name,
			.tools = request->tools,
			.home = request->home,
			.include = request->include,
			.exclude = request->exclude,
			.timeout_ms = request->timeout_ms,
			.bytes_max = request->limits.bytes_max,
		});
	}
	collect(workspace);
}

/* ---- one broker at a time ---- */

void work_unlock(struct work *work)
{
	if (work->is_guarded) {
		work->is_guarded = false;
		work->request.guard->end(work->request.guard);
	}
	fd_close(&work->lock_fd);
}

void workspace_unlock(struct workspace *workspace)
{
	ev_timer_stop(workspace->request->loop, &workspace->lock_retry);
	work_unlock(workspace_work(workspace));
}

static void fail_locked(struct workspace *workspace)
{
	struct error err;
	if (workspace->is_hurried) {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another acp-broker is syncing this workspace, and this one is ending and "
			"cannot wait: the next session syncs the rest");
	} else {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another acp-broker has been syncing this workspace for %lld s "
			"(sync-lock-timeout)",
			workspace->request->lock_timeout_ms / 1000);
	}
	workspace_fail(workspace, &err);
}

static void lock(struct workspace *workspace)
{
	struct error err;
	struct work *work = workspace_work(workspace);
	if (work->lock_fd < 0) {
		work->lock_fd = store_lock_open(&work->store, &err);
	}
	if (work->lock_fd < 0) {
		workspace_fail(workspace, &err);
		return;
	}
	if (store_lock_try(work->lock_fd)) {
		ev_timer_stop(workspace->request->loop, &workspace->lock_retry);
		block(workspace, read_base, prepare);
		return;
	}
	if (!workspace->is_hurried && clock_now_ms() < workspace->lock_deadline_ms) {
		ev_timer_again(workspace->request->loop, &workspace->lock_retry);
		return;
	}
	fail_locked(workspace);
}

static void on_lock_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
	lock(CONTAINER_OF(timer, struct workspace, lock_retry));
}

static void init_round(struct workspace *workspace, struct round *round)
{
	const struct sync_order *order = &workspace_work(workspace)->order;
	round_finish(round);
	round_init(round);
	words_append_all(&round->always, (const char *const *)workspace->always_held);
	round->has_allowed = workspace->has_allowed_held;
	round->allowed = workspace->allowed_held;
	memcpy(round->refused, workspace->refused_held, sizeof(round->refused));
	round->told_excess = workspace->told_excess;
	round->parks_held = order->reason == SYNC_REASON_STOP || order->reason == SYNC_REASON_CRASH;
	round->is_first = !workspace->has_tree;
	round->mode = order->deletions;
	round->asked = order->asked;
	static const git_oid none;
	if (round->mode == SYNC_DELETIONS_KEEP && !id_equal(&round->asked, &none)) {
		workspace->refused_deletions = round->asked;
	}
	round->refused_deletions = workspace->refused_deletions;
}

static void begin(struct workspace *workspace)
{
	struct work *work = workspace_work(workspace);
	init_round(workspace, &work->round);
	work->has_target = false;
	work->has_gone_back = false;
	work->tries = 0;
	workspace->sent_bytes = 0;
	workspace->received_bytes = 0;
	workspace->started_ms = clock_now_ms();
	workspace->lock_deadline_ms = workspace->started_ms + workspace->request->lock_timeout_ms;
	block(workspace, open_store, lock);
}

static void on_start(struct soon *soon)
{
	begin(CONTAINER_OF(soon, struct workspace, start));
}

void workspace_steps_init(struct workspace *workspace)
{
	struct pool_job *job = &workspace->work->job;
	job->lane = POOL_LANE_SYNC;
	job->run = run_step;
	job->done = on_step_done;
	soon_init(&workspace->start, workspace->request->loop, on_start);
	ev_timer_init(&workspace->lock_retry, on_lock_retry, 0., LOCK_RETRY_MS / 1000.);
}
