/* SPDX-License-Identifier: MIT */
#include "providers/daytona/claim.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "providers/daytona/note.h"

static const double retry_seconds = 0.1;

enum claim_order { CLAIM_TAKE, CLAIM_ADOPT, CLAIM_KEEP, CLAIM_ALONE, CLAIM_FORGET };

/* The work on the pool; it outlives a claim that is destroyed. */
struct claim_work {
	struct pool_job job;
	struct daytona_claim *claim;
	enum claim_order order;
	char *state_folder, *profile, *directory; // owned; the first and last may be NULL
	char *wanted; // owned; the sandbox's name; NULL: search by the identity
	bool is_new;
	struct daytona_account account;
	bool is_transient;
	char *others; // owned; NULL: it belongs to this account
	bool has_identity;
	struct daytona_identity identity;
	int lock_fd;
	bool is_ok;
	struct error err;
};

struct daytona_claim {
	struct claim_work *work; // owned
	const struct provider_context *context;
	ev_timer retry;
	long long deadline_ms;
	long long timeout_ms;
	daytona_claim_done *done;
	void *data;
};

static void work_drop(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	daytona_account_finish(&work->account);
	free(work->others);
	daytona_identity_finish(&work->identity);
	fd_close(&work->lock_fd);
	free(work->state_folder);
	free(work->profile);
	free(work->directory);
	free(work->wanted);
	free(work);
}

/* ---- on the pool ---- */

/* Writes a new note, or replaces another account's note by this broker's. */
static bool write_note(struct claim_work *work, bool is_transient)
{
	const struct daytona_identity *identity = &work->identity;
	struct daytona_note note = {.profile = mem_strdup(work->profile),
		.workspace = mem_strdup_or_null(identity->directory),
		.is_transient = is_transient};
	bool ok = daytona_account_mark(&work->account, &note.mark, &work->err) &&
	          daytona_note_write(work->state_folder, identity->name, &note, &work->err);
	daytona_note_finish(&note);
	return ok;
}

/* A note that cannot be read does not show whose sandbox it is, so it stays as well. */
static bool check_note(struct claim_work *work)
{
	struct daytona_note note;
	struct error err;
	bool is_same = false;
	free(work->others);
	work->others = NULL;
	if (!daytona_note_read(work->state_folder, work->identity.name, &note, &err)) {
		if (err.code == ERROR_NOT_FOUND) {
			return write_note(work, work->is_transient);
		}
		work->others = mem_strdup("by a broker whose note of it cannot be read");
		return true;
	}
	bool ok = daytona_account_check(&work->account, &note.mark, &is_same, &work->err);
	work->others = is_same ? NULL : daytona_mark_describe(&note.mark);
	daytona_note_finish(&note);
	return ok;
}

/* Keeps the other fields as they are. */
static bool change_note(struct claim_work *work)
{
	struct daytona_note note;
	struct error ignored;
	const char *name = work->identity.name;
	bool is_kept = work->order == CLAIM_KEEP;
	if (!daytona_note_read(work->state_folder, name, &note, &ignored)) {
		return write_note(work, work->is_transient && !is_kept);
	}
	bool ok = true;
	if (is_kept) {
		note.is_transient = false;
	} else {
		daytona_mark_finish(&note.mark);
		ok = daytona_account_mark(&work->account, &note.mark, &work->err);
	}
	ok = ok && daytona_note_write(work->state_folder, name, &note, &work->err);
	if (ok && !is_kept) {
		free(work->others);
		work->others = NULL;
	}
	daytona_note_finish(&note);
	return ok;
}

static bool take(struct claim_work *work)
{
	struct daytona_identity *identity = &work->identity;
	bool is_random = work->is_new && !work->wanted;
	if (!work->has_identity && !daytona_identity_init(identity, work->state_folder,
					   work->profile, work->directory, is_random, &work->err)) {
		return false;
	}
	work->has_identity = true;
	if (work->wanted) {
		text_whole(identity->name, sizeof(identity->name), "%s", work->wanted);
	}
	fd_close(&work->lock_fd);
	work->lock_fd = daytona_note_lock(
		work->state_folder, identity->name, DAYTONA_LOCK_SHARED, &work->err);
	return work->lock_fd >= 0 && check_note(work);
}

static void on_run(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	const char *name = work->identity.name;
	if (work->order == CLAIM_TAKE) {
		work->is_ok = take(work);
	} else if (work->order == CLAIM_ADOPT || work->order == CLAIM_KEEP) {
		work->is_ok = change_note(work);
	} else if (work->order == CLAIM_ALONE) {
		work->is_ok = daytona_note_lock_alone(work->lock_fd, name, &work->err);
	} else {
		daytona_note_remove(work->state_folder, name);
		work->is_ok = true;
	}
	bool holds = work->order == CLAIM_ADOPT || work->order == CLAIM_KEEP;
	if ((!work->is_ok && !holds) || work->order == CLAIM_FORGET) {
		fd_close(&work->lock_fd);
	}
}

/* ---- on the loop ---- */

static void end(struct daytona_claim *claim, const struct error *err)
{
	daytona_claim_done *done = claim->done;
	struct error copy;
	if (err) {
		copy = *err;
	}
	claim->done = NULL;
	done(claim->data, err ? &copy : NULL);
}

static void on_done(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	struct daytona_claim *claim = work->claim;
	bool is_held = !work->is_ok && work->err.code == ERROR_UNAVAILABLE;
	if (is_held && work->order == CLAIM_TAKE && clock_now_ms() < claim->deadline_ms) {
		ev_timer_set(&claim->retry, retry_seconds, 0.);
		ev_timer_start(claim->context->loop, &claim->retry);
		return;
	}
	if (is_held && work->order == CLAIM_TAKE) {
		error_set_reason(&work->err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another broker has been ending sandbox %s for more than %lld s "
			"(stop-timeout)",
			work->identity.name, claim->timeout_ms / 1000);
	}
	end(claim, work->is_ok ? NULL : &work->err);
}

static void submit(struct daytona_claim *claim)
{
	struct claim_work *work = claim->work;
	struct error err;
	if (!pool_submit(claim->context->pool, &work->job, &err)) {
		work->is_ok = false;
		work->err = err;
		work->err.code = ERROR_SYSTEM; // not tried again
		on_done(&work->job);
	}
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
	submit(CONTAINER_OF(timer, struct daytona_claim, retry));
}

static void order(struct daytona_claim *claim, enum claim_order what, daytona_claim_done *done)
{
	claim->work->order = what;
	claim->done = done;
	claim->deadline_ms = clock_now_ms() + claim->timeout_ms;
	ev_timer_set(&claim->retry, 0., 0.);
	ev_timer_start(claim->context->loop, &claim->retry);
}

/* ---- for the caller ---- */

struct daytona_claim *daytona_claim_create(const struct daytona_claim_config *config)
{
	struct daytona_claim *claim = mem_alloc_zero(sizeof(*claim));
	struct claim_work *work = mem_alloc_zero(sizeof(*work));
	claim->context = config->context;
	claim->timeout_ms = config->timeout_ms;
	claim->data = config->data;
	claim->work = work;
	ev_timer_init(&claim->retry, on_retry, 0., 0.);
	work->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = work_drop};
	work->claim = claim;
	work->state_folder = mem_strdup_or_null(config->context->state_folder);
	work->profile = mem_strdup(config->profile);
	work->directory = mem_strdup_or_null(config->directory);
	work->wanted = mem_strdup_or_null(config->reference);
	work->is_new = config->is_new;
	work->is_transient = config->is_transient;
	daytona_account_init(&work->account, config->account->api, config->account->organization,
		config->account->key);
	work->lock_fd = -1;
	return claim;
}

void daytona_claim_destroy(struct daytona_claim *claim)
{
	if (!claim) {
		return;
	}
	ev_timer_stop(claim->context->loop, &claim->retry);
	pool_leave(&claim->work->job);
	free(claim);
}

void daytona_claim_take(struct daytona_claim *claim, const char *name, daytona_claim_done *done)
{
	if (name) {
		mem_set_text(&claim->work->wanted, name);
	}
	order(claim, CLAIM_TAKE, done);
}

void daytona_claim_take_alone(struct daytona_claim *claim, daytona_claim_done *done)
{
	order(claim, CLAIM_ALONE, done);
}

void daytona_claim_adopt(struct daytona_claim *claim, daytona_claim_done *done)
{
	order(claim, CLAIM_ADOPT, done);
}

void daytona_claim_keep(struct daytona_claim *claim, daytona_claim_done *done)
{
	order(claim, CLAIM_KEEP, done);
}

const char *daytona_claim_others(const struct daytona_claim *claim)
{
	return claim->work->others;
}

void daytona_claim_forget(struct daytona_claim *claim, daytona_claim_done *done)
{
	order(claim, CLAIM_FORGET, done);
}

bool daytona_claim_is_busy(const struct daytona_claim *claim)
{
	return claim->done != NULL;
}

void daytona_claim_release(struct daytona_claim *claim)
{
	fd_close(&claim->work->lock_fd);
}

const struct daytona_identity *daytona_claim_identity(const struct daytona_claim *claim)
{
	return &claim->work->identity;
}
