/* SPDX-License-Identifier: MIT */
#include "sync/workspace_impl.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/words.h"
#include "sync/id.h"
#include "sync/store_end.h"
#include "sync/store_lock.h"

enum { LOCK_RETRY_MS = 50 };

/* ---- blocking steps, on the pool ---- */

static void run_step(struct pool_job *job)
{
	struct workspace *workspace = CONTAINER_OF(job, struct workspace, job);
	workspace->step_is_ok = workspace->step(workspace, &workspace->step_err);
}

static void on_step_done(struct pool_job *job)
{
	struct workspace *workspace = CONTAINER_OF(job, struct workspace, job);
	if (!workspace->step_is_ok) {
		workspace_fail(workspace, &workspace->step_err);
	} else {
		workspace->next(workspace);
	}
}

static bool block(
	struct workspace *workspace, blocking_step *step, void (*next)(struct workspace *workspace))
{
	struct error err;
	workspace->step = step;
	workspace->next = next;
	if (pool_submit(workspace->request.pool, &workspace->job, &err)) {
		return true;
	}
	workspace_fail(workspace, &err);
	return false;
}

static bool open_store(struct workspace *workspace, struct error *err)
{
	const struct workspace_request *request = &workspace->request;
	if (workspace->is_open) {
		return true;
	}
	if (!snapshot_root_check(request->local_root, request->home, err) ||
		!store_open(
			&workspace->store, request->store_folder, request->big_file_bytes, err)) {
		return false;
	}
	store_note_root(&workspace->store, request->local_root);
	workspace->is_open = true;
	return true;
}

/* What -1 means, and whether a checkpoint is kept, changes with the sync that comes first. */
static bool find_target(struct workspace *workspace, struct error *err)
{
	const char *rollback = workspace_order(workspace)->rollback;
	if (rollback && !workspace->has_target) {
		workspace->has_target =
			checkpoint_find(&workspace->store, rollback, &workspace->back_to, err);
		return workspace->has_target;
	}
	return true;
}

static bool begin_guard(struct workspace *workspace, struct error *err)
{
	struct rollback_guard *guard = workspace->request.guard;
	if (guard && workspace_order(workspace)->rollback && !workspace->is_guarded) {
		workspace->is_guarded = guard->begin(guard, &workspace->is_cancelled, err);
		return workspace->is_guarded;
	}
	return true;
}

static void end_guard(struct workspace *workspace)
{
	if (workspace->is_guarded) {
		workspace->is_guarded = false;
		workspace->request.guard->end(workspace->request.guard);
	}
}

static bool read_base(struct workspace *workspace, struct error *err)
{
	struct round *round = &workspace->round;
	bool is_read = find_target(workspace, err) && begin_guard(workspace, err) &&
	               round_read_base(round, &workspace->store, &workspace->request, err);
	if (is_read && workspace->tries == 0) {
		round->began_empty = id_equal(&round->base, &store_empty_tree);
	}
	return is_read;
}

/* Whether it has failed is for who waits for the transport, too. */
static bool look(struct workspace *workspace, struct error *err)
{
	struct error why;
	if (!round_look(&workspace->round, &workspace->store, &workspace->request,
		    &workspace->is_cancelled, &why)) {
		workspace->look_err = why;
	}
	return true;
}

static bool merge_trees(struct workspace *workspace, struct error *err)
{
	return round_merge(&workspace->round, &workspace->store, &workspace->request,
		&workspace->is_cancelled, err);
}

static bool keep_target(struct workspace *workspace, struct error *err)
{
	const struct order *order = workspace_order(workspace);
	const char *reason = order->name ? order->name : sync_reason_name(order->reason);
	char back[64];
	if (order->rollback) {
		snprintf(back, sizeof(back), "%s rollback to %u",
			workspace->has_gone_back ? "after" : "before", workspace->back_to.number);
		reason = back;
	}
	struct round_keeping keeping = {reason, order->session};
	return round_keep(&workspace->round, &workspace->store, &workspace->request, &keeping,
		&workspace->checkpoint, err);
}

static bool go_back(struct workspace *workspace, struct error *err)
{
	workspace->has_gone_back = true;
	return round_go_back(&workspace->round, &workspace->store, &workspace->request,
		&workspace->back_to.tree, &workspace->is_cancelled, err);
}

/* ---- the steps, in order ---- */

static void collect(struct workspace *workspace);
static void deliver(struct workspace *workspace);

static void on_kept(struct workspace *workspace)
{
	if (workspace_order(workspace)->rollback && !workspace->has_gone_back) {
		block(workspace, go_back, deliver);
	} else {
		workspace_succeed(workspace);
	}
}

static const char *why_no_delivery(bool is_full, bool is_lasting)
{
	if (is_full) {
		return "there is no room in the sandbox";
	}
	return is_lasting ? "it cannot be replaced in the sandbox"
	                  : "files change there faster than they can be synced";
}

/*
 * A delivery has failed. One more is tried without what was in its way; in the end there is none,
 * and the sync has done all else. A sandbox that would be empty then is of no use.
 */
static bool tries_again(struct workspace *workspace, const struct transport_delivered *delivered,
	const struct error *err)
{
	struct round *round = &workspace->round;
	bool is_full = error_has_reason(err, "DISK_FULL");
	if ((!is_full && !error_has_reason(err, "RUNTIME_CHANGED")) || workspace->has_gone_back ||
		round->why_no_delivery) {
		return false;
	}
	size_t before = round->avoided.count;
	bool is_lasting = is_full || (delivered && delivered->is_lasting);
	bool fits =
		!delivered || !delivered->stuck || round_avoid(round, delivered->stuck, is_lasting);
	bool is_no_use = is_lasting && round->avoided.count == before;
	if (++workspace->tries < SYNC_ROUNDS_MAX && fits && !is_no_use) {
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
	struct round *round = &workspace->round;
	bool is_same = id_equal(&round->collected, &round->sent);
	if (is_same && !transport_follows(workspace->transport)) {
		block(workspace, keep_target, on_kept);
		return;
	}
	transport_deliver(
		workspace->transport, &round->collected, &round->sent, on_delivered, workspace);
}

/* The one that ends last, the transport's collecting or the look, goes on. */
static void join(struct workspace *workspace)
{
	if (workspace->is_collecting || pool_has(&workspace->job)) {
		return;
	}
	workspace->is_cancelled = false;
	if (workspace->collect_err.code != ERROR_NONE) {
		workspace_fail(workspace, &workspace->collect_err);
	} else if (workspace->look_err.code != ERROR_NONE) {
		workspace_fail(workspace, &workspace->look_err);
	} else {
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
		workspace->is_cancelled = true; // the look is for nothing
		join(workspace);
		return;
	}
	workspace->received_bytes += collected->received_bytes;
	workspace->round.collected = collected->tree;
	/* What that of another try, or of a sync that has failed, has found was not told yet. */
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
	transport_hold(workspace->transport, pool_has(&workspace->job));
	transport_collect(workspace->transport, &workspace->round.known, on_collected, workspace);
}

static void on_looked(struct workspace *workspace)
{
	transport_hold(workspace->transport, false);
	join(workspace);
}

/*
 * What the local directory is does not depend on what the runtime is: both are found out at
 * once, where they are not in each other's way.
 */
static void collect(struct workspace *workspace)
{
	workspace->collect_err.code = ERROR_NONE;
	workspace->look_err.code = ERROR_NONE;
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
	const struct workspace_request *request = &workspace->request;
	if (!workspace->transport) {
		workspace->transport = request->create_transport(&(struct transport_request){
			.loop = request->loop,
			.pool = request->pool,
			.sandbox = request->sandbox,
			.store = &workspace->store,
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

void workspace_unlock(struct workspace *workspace)
{
	ev_timer_stop(workspace->request.loop, &workspace->lock_retry);
	end_guard(workspace);
	fd_close(&workspace->lock_fd);
}

static void fail_locked(struct workspace *workspace)
{
	struct error err;
	if (workspace->is_hurried) {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another acp-broker is syncing this workspace, and there is no time to "
			"wait for it: what is not here yet comes with the next session");
	} else {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another acp-broker has been syncing this workspace for %lld s "
			"(sync-lock-timeout)",
			workspace->request.lock_timeout_ms / 1000);
	}
	workspace_fail(workspace, &err);
}

static void lock(struct workspace *workspace)
{
	struct error err;
	if (workspace->lock_fd < 0) {
		workspace->lock_fd = store_lock_open(&workspace->store, &err);
	}
	if (workspace->lock_fd < 0) {
		workspace_fail(workspace, &err);
		return;
	}
	if (store_lock_try(workspace->lock_fd)) {
		ev_timer_stop(workspace->request.loop, &workspace->lock_retry);
		block(workspace, read_base, prepare);
		return;
	}
	if (!workspace->is_hurried && clock_now_ms() < workspace->lock_deadline_ms) {
		ev_timer_again(workspace->request.loop, &workspace->lock_retry);
		return;
	}
	fail_locked(workspace);
}

static void on_lock_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
	lock(CONTAINER_OF(timer, struct workspace, lock_retry));
}

static void begin(struct workspace *workspace)
{
	round_finish(&workspace->round);
	round_init(&workspace->round);
	enum sync_reason reason = workspace_order(workspace)->reason;
	words_append_all(&workspace->round.always, (const char *const *)workspace->always_held);
	workspace->round.has_allowed = workspace->has_allowed_held;
	workspace->round.allowed = workspace->allowed_held;
	memcpy(workspace->round.refused, workspace->refused_held, sizeof(workspace->refused_held));
	workspace->round.told_excess = workspace->told_excess;
	workspace->round.parks_held = reason == SYNC_REASON_STOP || reason == SYNC_REASON_CRASH;
	workspace->tries = 0;
	workspace->has_target = false;
	workspace->has_gone_back = false;
	workspace->round.is_first = !workspace->has_tree;
	workspace->round.mode = workspace_order(workspace)->deletions;
	workspace->round.asked = workspace_order(workspace)->asked;
	workspace->sent_bytes = 0;
	workspace->received_bytes = 0;
	workspace->started_ms = clock_now_ms();
	workspace->lock_deadline_ms = workspace->started_ms + workspace->request.lock_timeout_ms;
	block(workspace, open_store, lock);
}

static void on_start(struct soon *soon)
{
	begin(CONTAINER_OF(soon, struct workspace, start));
}

void workspace_steps_init(struct workspace *workspace)
{
	workspace->job = (struct pool_job){.lane = POOL_LANE_SYNC,
		.run = run_step,
		.done = on_step_done,
		.drop = workspace_drop};
	soon_init(&workspace->start, workspace->request.loop, on_start);
	ev_timer_init(&workspace->lock_retry, on_lock_retry, 0., LOCK_RETRY_MS / 1000.);
}
