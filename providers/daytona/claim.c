/* SPDX-License-Identifier: MIT */
#include "providers/daytona/claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/daytona/note.h"

static const double retry_seconds = 0.1;

enum claim_order { CLAIM_TAKE, CLAIM_ADOPT, CLAIM_KEEP, CLAIM_ALONE, CLAIM_FORGET };

/* What the pool works on; outlives the claim where that is destroyed meanwhile. */
struct claim_paper {
	struct pool_job job;
	struct daytona_claim *claim;
	enum claim_order order;
	char *state_folder, *profile, *directory; // owned; the first and last may be NULL
	char *wanted;                             // owned; the name; NULL: by the identity
	bool is_new;
	struct daytona_account account;
	bool is_transient;
	char *others; // owned; NULL: it is of this account
	bool has_identity;
	struct daytona_identity identity;
	int lock_fd;
	bool is_ok;
	struct error err;
};

struct daytona_claim {
	struct claim_paper *paper; // owned
	const struct provider_context *context;
	ev_timer retry;
	long long deadline_ms;
	long long timeout_ms;
	daytona_claim_done *done;
	void *data;
};

static void paper_drop(struct pool_job *job)
{
	struct claim_paper *paper = CONTAINER_OF(job, struct claim_paper, job);
	daytona_account_finish(&paper->account);
	free(paper->others);
	daytona_identity_finish(&paper->identity);
	fd_close(&paper->lock_fd);
	free(paper->state_folder);
	free(paper->profile);
	free(paper->directory);
	free(paper->wanted);
	free(paper);
}

/* ---- on the pool ---- */

/* A new one, or that of this broker's account in the place of another. */
static bool write_note(struct claim_paper *paper, bool is_transient)
{
	const struct daytona_identity *identity = &paper->identity;
	struct daytona_note note = {.profile = mem_strdup(paper->profile),
		.workspace = mem_strdup_or_null(identity->directory),
		.is_transient = is_transient};
	bool ok = daytona_account_mark(&paper->account, &note.mark, &paper->err) &&
	          daytona_note_write(paper->state_folder, identity->name, &note, &paper->err);
	daytona_note_finish(&note);
	return ok;
}

/* What cannot be read does not say whose it is, and stays as well. */
static bool look_at_note(struct claim_paper *paper)
{
	struct daytona_note note;
	struct error err;
	bool is_same = false;
	free(paper->others);
	paper->others = NULL;
	if (!daytona_note_read(paper->state_folder, paper->identity.name, &note, &err)) {
		if (err.code == ERROR_NOT_FOUND) {
			return write_note(paper, paper->is_transient);
		}
		paper->others = mem_strdup("by a broker whose note of it cannot be read");
		return true;
	}
	bool ok = daytona_account_check(&paper->account, &note.mark, &is_same, &paper->err);
	paper->others = is_same ? NULL : daytona_mark_describe(&note.mark);
	daytona_note_finish(&note);
	return ok;
}

/* All else stays as it was written. */
static bool change_note(struct claim_paper *paper)
{
	struct daytona_note note;
	struct error ignored;
	const char *name = paper->identity.name;
	bool is_kept = paper->order == CLAIM_KEEP;
	if (!daytona_note_read(paper->state_folder, name, &note, &ignored)) {
		return write_note(paper, paper->is_transient && !is_kept);
	}
	bool ok = true;
	if (is_kept) {
		note.is_transient = false;
	} else {
		daytona_mark_finish(&note.mark);
		ok = daytona_account_mark(&paper->account, &note.mark, &paper->err);
	}
	ok = ok && daytona_note_write(paper->state_folder, name, &note, &paper->err);
	if (ok && !is_kept) {
		free(paper->others);
		paper->others = NULL;
	}
	daytona_note_finish(&note);
	return ok;
}

static bool take(struct claim_paper *paper)
{
	struct daytona_identity *identity = &paper->identity;
	bool is_random = paper->is_new && !paper->wanted;
	if (!paper->has_identity &&
		!daytona_identity_init(identity, paper->state_folder, paper->profile,
			paper->directory, is_random, &paper->err)) {
		return false;
	}
	paper->has_identity = true;
	if (paper->wanted) {
		snprintf(identity->name, sizeof(identity->name), "%s", paper->wanted);
	}
	fd_close(&paper->lock_fd);
	paper->lock_fd = daytona_note_lock(
		paper->state_folder, identity->name, DAYTONA_LOCK_SHARED, &paper->err);
	return paper->lock_fd >= 0 && look_at_note(paper);
}

static void on_run(struct pool_job *job)
{
	struct claim_paper *paper = CONTAINER_OF(job, struct claim_paper, job);
	const char *name = paper->identity.name;
	if (paper->order == CLAIM_TAKE) {
		paper->is_ok = take(paper);
	} else if (paper->order == CLAIM_ADOPT || paper->order == CLAIM_KEEP) {
		paper->is_ok = change_note(paper);
	} else if (paper->order == CLAIM_ALONE) {
		paper->is_ok = daytona_note_lock_alone(paper->lock_fd, name, &paper->err);
	} else {
		daytona_note_remove(paper->state_folder, name);
		paper->is_ok = true;
	}
	bool holds = paper->order == CLAIM_ADOPT || paper->order == CLAIM_KEEP;
	if ((!paper->is_ok && !holds) || paper->order == CLAIM_FORGET) {
		fd_close(&paper->lock_fd);
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
	struct claim_paper *paper = CONTAINER_OF(job, struct claim_paper, job);
	struct daytona_claim *claim = paper->claim;
	bool is_held = !paper->is_ok && paper->err.code == ERROR_UNAVAILABLE;
	if (is_held && paper->order == CLAIM_TAKE && clock_now_ms() < claim->deadline_ms) {
		ev_timer_set(&claim->retry, retry_seconds, 0.);
		ev_timer_start(claim->context->loop, &claim->retry);
		return;
	}
	if (is_held && paper->order == CLAIM_TAKE) {
		error_set_reason(&paper->err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another broker ends sandbox %s, for longer than %lld s (stop-timeout)",
			paper->identity.name, claim->timeout_ms / 1000);
	}
	end(claim, paper->is_ok ? NULL : &paper->err);
}

static void submit(struct daytona_claim *claim)
{
	struct claim_paper *paper = claim->paper;
	struct error err;
	if (!pool_submit(claim->context->pool, &paper->job, &err)) {
		paper->is_ok = false;
		paper->err = err;
		paper->err.code = ERROR_SYSTEM; // and is not tried again
		on_done(&paper->job);
	}
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
	submit(CONTAINER_OF(timer, struct daytona_claim, retry));
}

static void order(struct daytona_claim *claim, enum claim_order what, daytona_claim_done *done)
{
	claim->paper->order = what;
	claim->done = done;
	claim->deadline_ms = clock_now_ms() + claim->timeout_ms;
	ev_timer_set(&claim->retry, 0., 0.);
	ev_timer_start(claim->context->loop, &claim->retry);
}

/* ---- for the caller ---- */

struct daytona_claim *daytona_claim_create(const struct daytona_claim_config *config)
{
	struct daytona_claim *claim = mem_alloc_zero(sizeof(*claim));
	struct claim_paper *paper = mem_alloc_zero(sizeof(*paper));
	claim->context = config->context;
	claim->timeout_ms = config->timeout_ms;
	claim->data = config->data;
	claim->paper = paper;
	ev_timer_init(&claim->retry, on_retry, 0., 0.);
	paper->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = paper_drop};
	paper->claim = claim;
	paper->state_folder = mem_strdup_or_null(config->context->state_folder);
	paper->profile = mem_strdup(config->profile);
	paper->directory = mem_strdup_or_null(config->directory);
	paper->wanted = mem_strdup_or_null(config->reference);
	paper->is_new = config->is_new;
	paper->is_transient = config->is_transient;
	daytona_account_init(&paper->account, config->account->api, config->account->organization,
		config->account->key);
	paper->lock_fd = -1;
	return claim;
}

void daytona_claim_destroy(struct daytona_claim *claim)
{
	if (!claim) {
		return;
	}
	ev_timer_stop(claim->context->loop, &claim->retry);
	pool_leave(&claim->paper->job);
	free(claim);
}

void daytona_claim_take(struct daytona_claim *claim, const char *name, daytona_claim_done *done)
{
	if (name) {
		mem_set_text(&claim->paper->wanted, name);
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
	return claim->paper->others;
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
	fd_close(&claim->paper->lock_fd);
}

const struct daytona_identity *daytona_claim_identity(const struct daytona_claim *claim)
{
	return &claim->paper->identity;
}
