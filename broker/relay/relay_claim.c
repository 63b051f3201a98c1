/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "broker/relay/relay_claim_impl.h"
#include "broker/relay/relay_recover.h"
#include "broker/session/answer.h"

static const struct part_type type = {.size = sizeof(struct list), .init = part_init_list};

struct list *claims_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

static void work_drop(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	record_claim_finish(&work->records);
	free(work->state_folder);
	free(work->profile);
	free(work->session_id);
	free(work);
}

static void claim_destroy(struct claim *claim)
{
	list_remove(&claim->link);
	ev_timer_stop(claim->relay->config.loop, &claim->again);
	pool_leave(&claim->work->job);
	desk_drop(&claim->waiting);
	free(claim->id);
	free(claim->cwd);
	free(claim);
}

static struct claim *claim_of_waiting(struct waiting *waiting)
{
	return CONTAINER_OF(waiting, struct claim, waiting);
}

void relay_claim_on_left(struct waiting *waiting, const struct error *failure)
{
	struct claim *claim = claim_of_waiting(waiting);
	free(claim->id);
	claim->id = NULL;
	claim_let_go(claim);
}

void relay_claim_on_gone(struct waiting *waiting)
{
	claim_destroy(claim_of_waiting(waiting));
}

void claim_let_go(struct claim *claim)
{
	struct relay *relay = claim->relay;
	if (!pool_cancel(&claim->work->job)) {
		claim->is_let_go = true;
		claim->peer = NULL;
		free(claim->id);
		claim->id = NULL;
		desk_drop(&claim->waiting);
		return;
	}
	bool leaves_some = claim->work->leaves_some;
	claim_destroy(claim); // before the recovery looks, which skips locked records
	if (leaves_some) {
		relay_recover_wake(relay);
	}
}

struct claim *claim_of(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	struct claim *claim = work->claim;
	if (claim->is_let_go) {
		claim_let_go(claim);
		return NULL;
	}
	return claim;
}

void claim_note_left(struct claim_work *work)
{
	work->leaves_some = false;
	for (size_t i = 0; i < work->records.count; i++) {
		work->leaves_some |= work->records.records[i].state != RECORD_STOPPED;
	}
}

struct claim_request claim_request_of(const struct claim_work *work)
{
	return (struct claim_request){
		work->state_folder, work->profile, work->backend, work->session_id};
}

bool claim_submit(struct claim *claim, void (*run)(struct pool_job *job),
	void (*done)(struct pool_job *job), struct error *err)
{
	claim->work->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run, .done = done, .drop = work_drop};
	return pool_submit(claim->relay->config.pool, &claim->work->job, err);
}

/* ---- the look at the records ---- */

static void refuse(struct claim *claim, struct error *err)
{
	desk_fail(&claim->waiting, error_at(err, "session"));
}

/* The broker that has it is only finishing it. */
static void refuse_as_busy(struct claim *claim)
{
	struct error err;
	char who[64] = "a broker that is not visible from here";
	const struct record_claim *records = &claim->work->records;
	if (records->holder == getpid()) {
		snprintf(who, sizeof(who), "this broker");
	} else if (records->holder != 0) {
		snprintf(who, sizeof(who), "process %d", (int)records->holder);
	}
	failure_set(&err, "SESSION_BUSY", "session",
		"session \"%s\" is being collected or taken over by %s: try "
		"again later",
		claim->work->session_id, who);
	refuse(claim, &err);
}

static void refuse_as_held(struct claim *claim)
{
	struct error err;
	char who[64] = "a broker that is not visible from here";
	const struct record_claim *records = &claim->work->records;
	if (records->holder != 0) {
		snprintf(who, sizeof(who), "another broker, process %d", (int)records->holder);
	}
	failure_set(&err, "SESSION_IN_USE", "session",
		"session \"%s\" is in use by %s: close it there, or end that broker with "
		"acp-broker sessions stop %s",
		claim->work->session_id, who, records->holder_id);
	refuse(claim, &err);
}

static void refuse_as_unknown(struct claim *claim)
{
	struct error err = claim->work->records.err;
	error_prefix(&err, "finding out whether another broker has session \"%s\"",
		claim->work->session_id);
	refuse(claim, &err);
}

/* The request goes on as if it arrived now. */
static void go_on(struct claim *claim)
{
	struct relay *relay = claim->relay;
	struct call call;
	struct waiting *waiting = desk_detach(&claim->waiting);
	if (claim->work->outcome == CLAIM_TAKEN) {
		log_info("session %s: taken over from the broker that had it",
			claim->work->session_id);
	} else {
		claim_let_go(claim);
	}
	if (desk_open(waiting, &call)) {
		bool is_taken = relay->ops->on_editor_call(relay, &call);
		(void)is_taken; // always true for a request
	}
	desk_drop(waiting);
}

static void run_look(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	struct claim_request request = claim_request_of(work);
	work->outcome = record_claim_take(&request, &work->records);
	claim_note_left(work);
}

static bool may_wait(const struct claim *claim)
{
	const struct profile *profile = claim->relay->config.profile;
	double passed_ms = (ev_now(claim->relay->config.loop) - claim->began) * 1000;
	return passed_ms <
	       (claim->work->records.is_ending ? profile->prepare_timeout_ms : CLAIM_DOUBT_MS);
}

static void on_looked(struct pool_job *job)
{
	struct claim *claim = claim_of(job);
	if (!claim) {
		return;
	}
	const struct claim_work *work = claim->work;
	if (work->outcome == CLAIM_FAILED) {
		refuse_as_unknown(claim);
	} else if (work->outcome != CLAIM_HELD) {
		go_on(claim);
	} else if (!may_wait(claim)) {
		(work->records.is_ending ? refuse_as_busy : refuse_as_held)(claim);
	} else {
		if (work->records.is_ending && !claim->has_said_waiting) {
			claim->has_said_waiting = true;
			log_info("session %s: waiting for process %d, which is collecting its "
				 "changes",
				work->session_id, (int)work->records.holder);
		}
		ev_timer_set(&claim->again, CLAIM_LOOK_MS / 1000., 0.);
		ev_timer_start(claim->relay->config.loop, &claim->again);
	}
}

static void on_again(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct claim *claim = CONTAINER_OF(timer, struct claim, again);
	struct error err;
	if (!claim_submit(claim, run_look, on_looked, &err)) {
		refuse(claim, &err);
	}
}

static struct claim *claim_create(
	struct relay *relay, const struct call *call, const char *session_id)
{
	const struct relay_config *config = &relay->config;
	char cwd[FILE_PATH_MAX];
	struct claim *claim = mem_alloc_zero(sizeof(*claim));
	struct claim_work *work = mem_alloc_zero(sizeof(*work));
	claim->relay = relay;
	claim->id = mem_strndup(call->message.id);
	if (message_string(&call->message, PLACE_CWD, cwd, sizeof(cwd))) {
		claim->cwd = mem_strdup(cwd);
	}
	claim->work = work;
	claim->began = ev_now(config->loop);
	ev_init(&claim->again, on_again);
	work->claim = claim;
	work->state_folder = mem_strdup(config->state_folder);
	work->profile = mem_strdup(config->profile->name);
	work->session_id = mem_strdup(session_id);
	work->backend = config->profile->backend;
	list_append(claims_of(relay), &claim->link);
	desk_hold(&relay->desk, &claim->waiting, STAGE_CLAIM, NULL, call);
	return claim;
}

bool relay_claim_holds(struct relay *relay, const struct call *call)
{
	struct error err;
	char id[MESSAGE_SESSION_ID_MAX + 1];
	if (!call_is_new(call) || !relay->config.state_folder || !relay->config.pool ||
		call->method->means != MEANS_OPEN_AGAIN ||
		!message_string(&call->message, PLACE_SESSION_ID, id, sizeof(id)) ||
		session_find(&relay->sessions, id)) {
		return false;
	}
	if (!relay_admits_at(relay, call, (struct desk_pick){.stage = STAGE_CLAIM})) {
		return true;
	}
	struct claim *claim = claim_create(relay, call, id);
	if (!claim_submit(claim, run_look, on_looked, &err)) {
		refuse(claim, &err);
	}
	return true;
}

const char *relay_claim_reference(struct relay *relay, struct span id)
{
	const struct claim *claim = claim_find(relay, id);
	const char *reference = NULL;
	for (size_t i = 0; claim && !reference && i < claim->work->records.count; i++) {
		reference = claim->work->records.records[i].reference;
	}
	return reference;
}

/* ---- the end of a claim ---- */

struct claim *claim_find(struct relay *relay, struct span id)
{
	LIST_FOR_EACH(claim, claims_of(relay), struct claim, link) {
		if (claim->id && span_equals(span_of(claim->id), id)) {
			return claim;
		}
	}
	return NULL;
}

void relay_claim_drop(struct relay *relay, struct span id)
{
	struct claim *claim = list_is_empty(claims_of(relay)) ? NULL : claim_find(relay, id);
	if (claim) {
		claim_let_go(claim);
	}
}

void relay_claim_finish(struct relay *relay)
{
	LIST_FOR_EACH(claim, claims_of(relay), struct claim, link) {
		claim_destroy(claim);
	}
}
