/* SPDX-License-Identifier: MIT */
#include "broker/ledger/collect.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/soon.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "broker/ledger/collect_record.h"
#include "broker/ledger/sync_text.h"

struct collect {
	struct collect_config config;
	struct collect_record *taken; // owned
	struct record seen;           // a copy of the record as it was
	bool has_seen;
	struct sync_settings settings; // the profile's, adjusted by the record
	struct sandbox *sandbox;       // owned
	struct keeper *keeper;         // owned
	ev_timer due;                  // prepare-timeout
	struct soon soon;              // calls done
	bool is_reached;               // the sandbox was ready
	bool is_over;                  // the outcome is decided, but may not be saved yet
	bool is_kept;                  // the keeper has ended
	bool has_receipt;              // and everything was collected by then
	bool is_withdrawn; // what was started for nothing was stopped again, or cannot be
	bool is_stopping;  // collect_stop was called, and done was not
	enum collect_outcome outcome;
	struct error err;
};

/* ---- the end ---- */

static void on_withdrawn(void *data, const struct error *err)
{
	struct collect *collect = data;
	if (err) {
		log_failure(LOG_LEVEL_WARNING, err, "recovery: %s", err->text);
	}
	soon_start(&collect->soon);
}

/*
 * A sandbox from which nothing was collected was started for nothing. The keeper ends the sandbox
 * itself; while it works, nobody else does.
 */
static bool is_for_nothing(const struct collect *collect)
{
	bool is_kept = collect->is_kept && collect->outcome == COLLECT_DONE;
	bool is_keeping = collect->keeper && !collect->is_kept;
	return collect->sandbox && !collect->is_withdrawn && !is_kept && !is_keeping &&
	       !collect->has_receipt && sandbox_can_withdraw(collect->sandbox);
}

static void on_soon(struct soon *soon)
{
	struct collect *collect = CONTAINER_OF(soon, struct collect, soon);
	if (is_for_nothing(collect)) {
		collect->is_withdrawn = true;
		sandbox_withdraw(collect->sandbox, on_withdrawn, collect);
		return;
	}
	collect->is_stopping = false;
	collect->config.done(collect->config.data, collect->outcome,
		collect->has_seen ? &collect->seen : NULL,
		collect->outcome == COLLECT_DONE ? NULL : &collect->err);
}

/* From here on the record belongs to the worker: later reports of the sandbox change nothing. */
static void decide(struct collect *collect)
{
	collect->is_over = true;
	ev_timer_stop(collect->config.loop, &collect->due);
}

/* Not from inside a callback of the sandbox, because done may close it. */
static void end(struct collect *collect, enum collect_outcome outcome, const struct error *err)
{
	collect->outcome = outcome;
	if (err) {
		collect->err = *err;
	}
	decide(collect);
	soon_start(&collect->soon);
}

static void submit(struct collect *collect, void (*run)(struct pool_job *job),
	void (*done)(struct pool_job *job))
{
	struct error err;
	collect->taken->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run, .done = done, .drop = collect_record_drop};
	if (!pool_submit(collect->config.pool, &collect->taken->job, &err)) {
		end(collect, COLLECT_FAILED, &err);
	}
}

/* The collect of a job that has ended. */
static struct collect *collect_of(struct pool_job *job)
{
	return CONTAINER_OF(job, struct collect_record, job)->collect;
}

/* ---- saving a failure ---- */

static void on_noted(struct pool_job *job)
{
	end(collect_of(job), COLLECT_FAILED, NULL);
}

static bool was_collected(const struct record *record)
{
	return record->state == RECORD_COLLECTING && *record->receipt.runtime_tree;
}

/* For a failure before the keeper has the record; the keeper saves its own failures. */
static void fail(struct collect *collect, const struct error *err)
{
	struct record *record = &collect->taken->record;
	char now[TIMESTAMP_SIZE];
	collect->err = *err;
	decide(collect);
	if (collect->keeper || collect->config.is_discarded) {
		end(collect, COLLECT_FAILED, err);
		return;
	}
	if (!was_collected(record)) { // otherwise only the sandbox remains to be ended
		record->state = RECORD_FAILED;
	}
	mem_set_text(&record->error, err->text);
	text_whole(record->updated, sizeof(record->updated), "%s", timestamp_now(now));
	submit(collect, collect_record_write, on_noted);
}

/* ---- discarding ---- */

static void on_removed(struct pool_job *job)
{
	struct collect *collect = collect_of(job);
	const struct collect_record *taken = collect->taken;
	end(collect, taken->is_ok ? COLLECT_DONE : COLLECT_FAILED, &taken->err);
}

/* The sandbox cannot be found from here: removes only the record. */
static void forget(struct collect *collect, const struct error *err)
{
	decide(collect);
	log_warning("session %s: %s; the files there are not removed", collect->seen.id, err->text);
	submit(collect, collect_record_remove, on_removed);
}

/* Gives the sandbox up: the record no longer leads to it. */
static void give_up(struct collect *collect, const struct error *err)
{
	if (collect->config.is_discarded) {
		forget(collect, err);
	} else {
		fail(collect, err);
	}
}

/* ---- the sandbox ---- */

static void on_kept(void *data, const struct error *err)
{
	struct collect *collect = data;
	collect->is_kept = true;
	if (collect->is_over) {
		return;
	}
	if (err || !collect->config.is_discarded) {
		end(collect, err ? COLLECT_FAILED : COLLECT_DONE, err);
	} else {
		decide(collect);
		submit(collect, collect_record_remove, on_removed);
	}
}

static void on_synced(void *data, const struct keeper_event *event,
	const struct sync_result *result, const struct error *err)
{
	char text[SYNC_TEXT_MAX];
	if (sync_text_write(text, event->local_root, result, err)) {
		log_warning("recovery: %s", text);
	} else {
		log_info("recovery: %s", text);
	}
}

static void on_question(
	void *data, const struct keeper_event *event, const struct deletions *deletions)
{
	/* Nobody is there to answer: the last sync of a root never asks. */
}

static void on_state(void *data, const struct keeper_state *state)
{
	struct collect *collect = data;
	collect->has_receipt |= state->record->state == RECORD_COLLECTING;
	if (collect->config.on_state) {
		collect->config.on_state(collect->config.data, state);
	}
}

static const struct keeper_listener keeper_listener = {
	.on_ended = on_synced, .on_question = on_question, .on_state = on_state};

static void make_keeper(struct collect *collect)
{
	const struct collect_config *config = &collect->config;
	struct collect_record *taken = collect->taken;
	collect->keeper = keeper_create(&(struct keeper_config){
		.loop = config->loop,
		.pool = config->pool,
		.sandbox = collect->sandbox,
		.settings = &collect->settings,
		.profile = config->profile->name,
		.backend = config->profile->backend,
		.state_folder = config->state_folder,
		.home = config->home,
		.tools = config->tools,
		.listener = &keeper_listener,
		.data = collect,
	});
	keeper_adopt(collect->keeper, &taken->record, taken->lock_fd);
	taken->lock_fd = -1;
	if (config->is_discarded) {
		keeper_discard(collect->keeper, on_kept, collect);
	} else {
		keeper_recover(collect->keeper, on_kept, collect);
	}
}

static void on_stopped(struct pool_job *job)
{
	struct collect *collect = collect_of(job);
	if (collect) {
		on_state(collect, &(struct keeper_state){&collect->taken->record,
					  record_state_name(collect->seen.state)});
		end(collect, COLLECT_DONE, NULL);
	}
}

/*
 * A sandbox that is gone after everything was collected has ended properly; so has one that never
 * got any files.
 */
static void stop_record(struct collect *collect)
{
	struct record *record = &collect->taken->record;
	char now[TIMESTAMP_SIZE];
	decide(collect);
	record->state = RECORD_STOPPED;
	text_whole(record->updated, sizeof(record->updated), "%s", timestamp_now(now));
	submit(collect, collect_record_write, on_stopped);
}

static void on_gone(struct collect *collect, const struct error *err)
{
	const struct record *record = &collect->taken->record;
	if (collect->config.is_discarded) {
		collect->taken->is_gone = true;
		forget(collect, err);
	} else if (was_collected(record) || !record->runtime_root) {
		stop_record(collect);
	} else {
		fail(collect, err);
	}
}

static void on_root_gone(struct collect *collect, const struct error *err)
{
	struct error failure;
	error_set_reason(&failure, err->code, err->reason,
		"%s; the changes in it are lost too, if the profile has not been changed since",
		err->text);
	on_gone(collect, &failure);
}

static void on_root_added(void *data, const struct error *err)
{
	struct collect *collect = data;
	struct error failure;
	if (collect->is_over) {
		return;
	}
	if (err && error_has_reason(err, "SANDBOX_NOT_FOUND")) {
		on_root_gone(collect, err);
		return;
	}
	if (err && err->code == ERROR_NOT_FOUND) {
		give_up(collect, err);
		return;
	}
	if (err) {
		fail(collect, err);
		return;
	}
	const struct record *record = &collect->taken->record;
	const struct sandbox_root *root = sandbox_root_at(collect->sandbox, 0);
	if (record->runtime_root && strcmp(record->runtime_root, root->runtime) != 0) {
		error_set(&failure, ERROR_DENIED,
			"its files are in %s, but profile \"%s\" now leads to %s: restore the "
			"profile, or end the session with acp-broker sessions discard",
			record->runtime_root, record->profile, root->runtime);
		give_up(collect, &failure);
		return;
	}
	ev_timer_stop(collect->config.loop, &collect->due);
	make_keeper(collect);
}

static void on_ready(void *data)
{
	struct collect *collect = data;
	const struct record *record = &collect->taken->record;
	struct error err;
	collect->is_reached = true;
	if (collect->is_over) {
		return;
	}
	if (sandbox_is_instance(sandbox_instance(collect->sandbox), record->instance)) {
		sandbox_add_root(collect->sandbox, record->local_root, on_root_added, collect);
		return;
	}
	error_set_reason(&err, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
		"sandbox %s (%s) was deleted, with what was changed in %s there since its last "
		"sync; the present one of that name is another",
		record->reference, record->instance, record->local_root);
	on_gone(collect, &err);
}

static void on_failed(void *data, const struct error *err)
{
	struct collect *collect = data;
	if (collect->is_over) {
		return;
	}
	if (err->code == ERROR_NOT_FOUND && !collect->keeper) {
		on_gone(collect, err);
	} else {
		fail(collect, err);
	}
}

static void on_progress(void *data, const char *text)
{
	log_info("recovery: %s", text);
}

static const struct sandbox_listener sandbox_listener = {
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_failed = on_failed,
};

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct collect *collect = CONTAINER_OF(timer, struct collect, due);
	struct error err;
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
		"getting the sandbox ready took longer than %d s (prepare-timeout)",
		collect->config.profile->prepare_timeout_ms / 1000);
	fail(collect, &err);
}

static void prepare(struct collect *collect)
{
	const struct profile *profile = collect->config.profile;
	struct error err;
	struct sandbox_request request = {.profile = profile->name,
		.settings = &profile->settings,
		.directory = collect->seen.local_root,
		.reference = collect->seen.reference,
		.instance = collect->seen.instance,
		.prepare_timeout_ms = profile->prepare_timeout_ms};
	collect->sandbox = sandbox_prepare(
		collect->config.provider, &request, &sandbox_listener, collect, &err);
	if (!collect->sandbox) {
		fail(collect, &err);
	} else if (profile->prepare_timeout_ms > 0) {
		ev_timer_set(&collect->due, profile->prepare_timeout_ms / 1000.0, 0.);
		ev_timer_start(collect->config.loop, &collect->due);
	}
}

/* ---- the record ---- */

/* The record says how the session was synced and kept; that still applies. */
static void choose_settings(struct collect *collect)
{
	const struct record *record = &collect->taken->record;
	struct sync_settings *settings = &collect->settings;
	bool is_synced = strcmp(record->sync, sync_mode_name(SYNC_MODE_NONE)) != 0;
	*settings = collect->config.profile->sync;
	settings->mode = is_synced ? SYNC_MODE_SESSION : SYNC_MODE_NONE;
	if (!persistence_parse(record->persistence, &settings->persistence)) {
		settings->persistence =
			PERSISTENCE_REUSE; // written by a newer broker: keep the sandbox
	}
	if (collect->config.ends) {
		settings->persistence = PERSISTENCE_TRANSIENT;
	}
}

static void on_read(struct pool_job *job)
{
	struct collect *collect = collect_of(job);
	struct error err;
	struct collect_record *taken = collect->taken;
	if (!taken->is_ok) {
		end(collect, taken->is_held ? COLLECT_HELD : COLLECT_FAILED, &taken->err);
		return;
	}
	collect->seen = collect_record_copy(taken);
	collect->has_seen = true;
	bool is_done = taken->record.state == RECORD_STOPPED && !collect->config.ends;
	if (!collect->config.is_discarded && is_done) {
		end(collect, COLLECT_DONE, NULL);
	} else if (!collect_record_check(taken, collect->config.profile, &err)) {
		give_up(collect, &err);
	} else {
		choose_settings(collect);
		prepare(collect);
	}
}

/* ---- life ---- */

struct collect *collect_start(const struct collect_config *config, const char *id)
{
	struct collect *collect = mem_alloc_zero(sizeof(*collect));
	struct collect_record *taken = mem_alloc_zero(sizeof(*taken));
	collect->config = *config;
	collect->taken = taken;
	taken->collect = collect;
	ev_init(&collect->due, on_due);
	soon_init(&collect->soon, collect->config.loop, on_soon);
	taken->state_folder = mem_strdup(config->state_folder);
	text_whole(taken->id, sizeof(taken->id), "%s", id);
	taken->folder_fd = -1;
	taken->lock_fd = -1;
	submit(collect, collect_record_read, on_read);
	return collect;
}

bool collect_has_reached(const struct collect *collect)
{
	return collect->is_reached;
}

bool collect_hurry(struct collect *collect)
{
	if (collect->keeper) {
		keeper_hurry(collect->keeper);
	}
	return collect->keeper != NULL;
}

bool collect_stop(struct collect *collect)
{
	struct error err;
	bool ends_itself = collect->keeper && keeper_is_ending(collect->keeper);
	if (!collect->sandbox || !sandbox_can_withdraw(collect->sandbox)) {
		return false;
	}
	collect->is_stopping = true;
	if (!collect->is_over && !ends_itself) {
		keeper_destroy(collect->keeper);
		collect->keeper = NULL;
		collect->has_receipt = false;
		error_set_reason(&err, ERROR_UNAVAILABLE, "SHUTTING_DOWN",
			"it was stopped before everything was collected");
		end(collect, COLLECT_FAILED, &err);
	}
	return true;
}

void collect_destroy(struct collect *collect)
{
	if (!collect) {
		return;
	}
	if (collect->is_stopping) {
		log_warning("recovery: sandbox %s of session %s was being stopped again, but "
			    "may still run (see acp-broker sandboxes list)",
			collect->seen.reference ? collect->seen.reference : "(no name yet)",
			collect->seen.id);
	}
	ev_timer_stop(collect->config.loop, &collect->due);
	soon_stop(&collect->soon);
	keeper_destroy(collect->keeper);
	sandbox_close(collect->sandbox);
	pool_leave(&collect->taken->job);
	record_finish(&collect->seen);
	free(collect);
}
