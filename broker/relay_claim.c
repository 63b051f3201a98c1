/* SPDX-License-Identifier: MIT */
#include "broker/relay_claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "broker/keeper.h"
#include "broker/notice.h"
#include "broker/record_claim.h"

enum { AUTH_REQUIRED = -32000, REQUEST_CANCELLED = -32800 }; // ACP, ErrorCode

/* What is done on the pool; outlives the claim where that is destroyed. */
struct work {
	struct pool_job job;
	struct claim *claim;                       // NULL: nobody waits for it
	char *state_folder, *profile, *session_id; // owned
	const char *backend;                       // static
	enum claim_outcome outcome;
	struct record_claim records;
};

struct claim {
	struct list link; // relay.claims
	struct relay *relay;
	char *id;              // owned; of the request; raw; NULL: it was answered
	char *cwd;             // owned; may be NULL
	struct parcel *parcel; // owned; the request, while it waits
	struct work *work;     // owned
	bool is_working;
	ev_timer again;
	double began; // ev_now
	bool has_said_waiting;
};

static void work_free(struct work *work)
{
	record_claim_finish(&work->records);
	free(work->state_folder);
	free(work->profile);
	free(work->session_id);
	free(work);
}

static void claim_destroy(struct claim *claim)
{
	struct relay *relay = claim->relay;
	struct work *work = claim->work;
	list_remove(&claim->link);
	ev_timer_stop(relay->config.loop, &claim->again);
	work->claim = NULL;
	if (!claim->is_working || pool_cancel(relay->config.pool, &work->job)) {
		work_free(work);
	}
	parcel_destroy(claim->parcel);
	free(claim->id);
	free(claim->cwd);
	free(claim);
}

/* Whose job has ended; NULL where nobody waits any more. */
static struct claim *claim_of(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	if (!work->claim) {
		work_free(work);
		return NULL;
	}
	work->claim->is_working = false;
	return work->claim;
}

static struct claim_request request_of(const struct work *work)
{
	return (struct claim_request){
		work->state_folder, work->profile, work->backend, work->session_id};
}

static bool submit(struct claim *claim, void (*run)(struct pool_job *job),
	void (*done)(struct pool_job *job), struct error *err)
{
	claim->work->job = (struct pool_job){.lane = POOL_LANE_WORK, .run = run, .done = done};
	claim->is_working = pool_submit(claim->relay->config.pool, &claim->work->job, err);
	return claim->is_working;
}

/* ---- the look at the records ---- */

static void refuse(struct claim *claim, const char *code, const char *text)
{
	char *id = claim->id;
	claim->id = NULL;
	relay_fail(claim->relay, span_of(id), &(struct failure){code, "session", text, {NULL, 0}});
	free(id);
	claim_destroy(claim);
}

static void refuse_as_held(struct claim *claim)
{
	char text[ERROR_TEXT_MAX];
	char who[64] = "a broker that cannot be seen from here";
	const struct record_claim *records = &claim->work->records;
	if (records->holder != 0) {
		snprintf(who, sizeof(who), "another broker, process %d", (int)records->holder);
	}
	snprintf(text, sizeof(text),
		"session \"%.300s\" is in use by %s%s: close it there, or end that broker with "
		"acp-broker sessions stop %s",
		claim->work->session_id, who, records->is_ending ? ", which is ending" : "",
		records->holder_id);
	refuse(claim, "SESSION_IN_USE", text);
}

/* The request goes on as if it came now. */
static void pass(struct claim *claim)
{
	struct relay *relay = claim->relay;
	struct call call;
	struct parcel *parcel = claim->parcel;
	claim->parcel = NULL;
	if (claim->work->outcome == CLAIM_TAKEN) {
		log_info("session %s: taken over from the broker that had it",
			claim->work->session_id);
	} else {
		claim_destroy(claim);
	}
	splice_clear(&relay->splice);
	if (relay_open_parcel(parcel, &call)) {
		call.was_claimed = true;
		bool is_taken = relay_on_editor_call(relay, &call);
		(void)is_taken; // a request always is
	}
	splice_clear(&relay->splice);
	parcel_destroy(parcel);
}

static void run_look(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	struct claim_request request = request_of(work);
	work->outcome = record_claim_take(&request, &work->records);
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
	const struct work *work = claim->work;
	if (work->outcome != CLAIM_HELD) {
		pass(claim);
	} else if (!may_wait(claim)) {
		refuse_as_held(claim);
	} else {
		if (work->records.is_ending && !claim->has_said_waiting) {
			claim->has_said_waiting = true;
			log_info("session %s: waiting for process %d, which collects what it left",
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
	if (!submit(claim, run_look, on_looked, &err)) {
		refuse(claim, failure_code_of(&err), err.text);
	}
}

static struct claim *claim_create(
	struct relay *relay, const struct call *call, const char *session_id)
{
	const struct relay_config *config = &relay->config;
	char cwd[FILE_PATH_MAX];
	struct claim *claim = mem_alloc_zero(sizeof(*claim));
	struct work *work = mem_alloc_zero(sizeof(*work));
	claim->relay = relay;
	claim->id = mem_strndup(call->message.id);
	if (message_string(&call->message, PLACE_CWD, cwd, sizeof(cwd))) {
		claim->cwd = mem_strdup(cwd);
	}
	claim->parcel = parcel_create(call->from, call->frame, relay->places);
	claim->work = work;
	claim->began = ev_now(config->loop);
	ev_init(&claim->again, on_again);
	work->claim = claim;
	work->state_folder = mem_strdup(config->state_folder);
	work->profile = mem_strdup(config->profile->name);
	work->session_id = mem_strdup(session_id);
	work->backend = backend_name(config->profile->backend);
	list_append(&relay->claims, &claim->link);
	return claim;
}

bool relay_claim_holds(struct relay *relay, const struct call *call)
{
	struct error err;
	char id[MESSAGE_SESSION_ID_MAX + 1];
	const char *method = call->message.method;
	if (call->was_claimed || call->was_parked || !relay->config.state_folder ||
		!relay->config.pool ||
		(strcmp(method, "session/load") != 0 && strcmp(method, "session/resume") != 0) ||
		!message_string(&call->message, PLACE_SESSION_ID, id, sizeof(id)) ||
		session_find(&relay->sessions, id)) {
		return false;
	}
	struct claim *claim = claim_create(relay, call, id);
	if (!submit(claim, run_look, on_looked, &err)) {
		refuse(claim, failure_code_of(&err), err.text);
	}
	return true;
}

/* ---- what became of it ---- */

static struct claim *find(struct relay *relay, struct span id)
{
	LIST_FOR_EACH(claim, &relay->claims, struct claim, link) {
		if (claim->id && span_equals(span_of(claim->id), id)) {
			return claim;
		}
	}
	return NULL;
}

static void run_move(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	struct claim_request request = request_of(work);
	record_claim_move(&request, &work->records);
	record_claim_finish(&work->records); // what is left in them is for a recovery
}

static void on_moved(struct pool_job *job)
{
	struct claim *claim = claim_of(job);
	if (claim) {
		claim_destroy(claim);
	}
}

/* A record of ours has the session: the old ones have not any more. */
static void on_written(void *data, const struct error *err)
{
	struct claim *claim = data;
	struct error ignored;
	if (err || !submit(claim, run_move, on_moved, &ignored)) {
		claim_destroy(claim);
	}
}

static bool is_root(const struct session *session, const char *path)
{
	for (char **root = session->roots; path && root && *root; root++) {
		if (strcmp(*root, path) == 0) {
			return true;
		}
	}
	return false;
}

/* Its sandbox is not the one it had. */
static void tell_of_loss(
	struct relay *relay, const struct session *session, const struct record *record)
{
	char text[ERROR_TEXT_MAX];
	bool is_collected = record->state == RECORD_STOPPED;
	bool has_ended = is_collected && strcmp(record->persistence, "transient") == 0;
	if (!record->runtime_root || (is_root(session, record->runtime_root) && !has_ended)) {
		return;
	}
	snprintf(text, sizeof(text),
		"The session goes on in another sandbox, with the workspace as it is here: the one "
		"it "
		"had, %.400s, %s",
		record->runtime_root,
		has_ended ? "has ended (persistence = transient)"
		: is_collected
			? "is not used any more"
			: "was not found; what was changed there since the last sync is not here");
	notice_send(relay, session, text, true);
}

/* It had this very sandbox, from which the session's first sync has brought what was left. */
static bool goes_on(const struct session *session, const struct record *record)
{
	struct kept kept;
	const struct peer *peer = session->peer;
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	const char *reference = sandbox ? sandbox_reference(sandbox) : NULL;
	bool is_same = reference && record->reference ? strcmp(reference, record->reference) == 0
	                                              : reference == record->reference;
	return is_same && record->runtime_root && peer->keeper &&
	       keeper_find(peer->keeper, record->runtime_root, &kept) &&
	       strcmp(kept.local_root, record->local_root) == 0 &&
	       strcmp(kept.runtime_root, record->runtime_root) == 0 &&
	       (kept.is_synced || strcmp(record->sync, sync_mode_name(SYNC_MODE_NONE)) == 0);
}

void relay_claim_opened(
	struct relay *relay, const struct request *request, const struct session *session)
{
	struct claim *claim = find(relay, pending_origin(&request->pending));
	if (!claim) {
		return;
	}
	struct record_claim *records = &claim->work->records;
	for (size_t i = 0; i < records->count; i++) {
		struct record *record = &records->records[i];
		tell_of_loss(relay, session, record);
		if (goes_on(session, record)) {
			record->state = RECORD_STOPPED; // written down by record_claim_move
		}
	}
	free(claim->id);
	claim->id = NULL;
	if (session->peer->keeper) {
		keeper_flush(session->peer->keeper, on_written, claim);
	} else {
		claim_destroy(claim); // nothing is kept: no record is to say that it is here
	}
}

bool relay_claim_on_error(struct relay *relay, struct request *request, struct span error)
{
	char text[ERROR_TEXT_MAX];
	struct claim *claim = find(relay, pending_origin(&request->pending));
	struct json_doc *doc =
		claim && error.len > 0 ? json_doc_parse_unchecked(error, NULL) : NULL;
	long long code = doc ? json_int(doc, json_get(doc, 0, "code"), 0) : AUTH_REQUIRED;
	bool is_lost = code != AUTH_REQUIRED && code != REQUEST_CANCELLED;
	if (is_lost) {
		char *message = json_string(doc, json_get(doc, 0, "message"));
		snprintf(text, sizeof(text),
			"session \"%.200s\" cannot be restored, the agent says: %.300s; its files "
			"are "
			"safe in %.300s: start a new session",
			claim->work->session_id, message ? message : "",
			claim->cwd ? claim->cwd : "the workspace");
		free(message);
	}
	json_doc_destroy(doc);
	if (is_lost) {
		relay_fail(relay, pending_origin(&request->pending),
			&(struct failure){"SESSION_LOST", "session", text, {NULL, 0}});
	} else if (claim) {
		claim_destroy(claim);
	}
	return is_lost;
}

void relay_claim_drop(struct relay *relay, struct span id)
{
	struct claim *claim = list_is_empty(&relay->claims) ? NULL : find(relay, id);
	if (claim) {
		claim_destroy(claim);
	}
}

void relay_claim_end(struct relay *relay)
{
	LIST_FOR_EACH(claim, &relay->claims, struct claim, link) {
		if (claim->parcel) {
			refuse(claim, "SHUTTING_DOWN", "the broker is ending");
		}
	}
}

void relay_claim_finish(struct relay *relay)
{
	LIST_FOR_EACH(claim, &relay->claims, struct claim, link) {
		claim_destroy(claim);
	}
}
