/* SPDX-License-Identifier: MIT */
#include "base/json_doc.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "broker/ledger/keeper.h"
#include "broker/relay/relay_claim_impl.h"
#include "broker/session/answer.h"
#include "broker/session/notice.h"

/* What happens to a session that was taken over. */

static void run_move(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	struct claim_request request = claim_request_of(work);
	struct error err;
	if (record_claim_move(&request, &work->records, &err)) {
		claim_note_left(work);
	} else {
		log_failure(LOG_LEVEL_WARNING, &err, "session %s: %s", work->session_id, err.text);
	}
	record_claim_finish(&work->records); // the recovery finishes what is left in them
}

static void on_moved(struct pool_job *job)
{
	struct claim *claim = claim_of(job);
	if (claim) {
		claim_let_go(claim);
	}
}

/* One of our records has the session now, so the old ones no longer do. */
static void on_written(void *data, const struct error *err)
{
	struct claim *claim = data;
	struct error ignored;
	if (err || !claim_submit(claim, run_move, on_moved, &ignored)) {
		claim_let_go(claim);
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

/* Whether the session is in the record's sandbox, and not in a later one of the same name. */
static bool is_instance(const struct session *session, const struct record *record)
{
	return sandbox_is_instance(session->instance, record->instance);
}

/* Tells the user if the session is in another sandbox than before. */
static void tell_of_loss(
	struct relay *relay, const struct session *session, const struct record *record)
{
	char text[ERROR_TEXT_MAX];
	bool is_collected = record->state == RECORD_STOPPED;
	bool is_transient = strcmp(record->persistence, "transient") == 0;
	bool has_ended = is_collected && is_transient;
	bool is_there = is_root(session, record->runtime_root) && is_instance(session, record);
	bool is_again = has_ended && relay_is_per_session(relay); // made again in the same place
	if (!record->runtime_root || (is_there && (!has_ended || is_again))) {
		return;
	}
	text_format(text, sizeof(text),
		"The session continues in another sandbox, with the workspace as it is here: its "
		"it had, %s, %s",
		record->runtime_root,
		has_ended      ? "has ended (persistence = transient)"
		: is_collected ? "is no longer used"
		: is_transient
			? "is being collected in the background, then ends (persistence = "
			  "transient)"
			: "was not found; what was changed there since the last sync is not here");
	notice_send(relay, session, text, true);
}

/* Whether the session is in the same sandbox, from which its first sync has brought all changes. */
static bool goes_on(const struct session *session, const struct record *record)
{
	struct kept kept;
	const struct peer *peer = session->peer;
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	const char *reference = sandbox ? sandbox_reference(sandbox) : NULL;
	return record_is_of(record, reference, session->instance) && record->runtime_root &&
	       peer->keeper && keeper_find(peer->keeper, record->runtime_root, &kept) &&
	       strcmp(kept.local_root, record->local_root) == 0 &&
	       strcmp(kept.runtime_root, record->runtime_root) == 0 &&
	       (kept.is_synced || strcmp(record->sync, sync_mode_name(SYNC_MODE_NONE)) == 0);
}

void relay_claim_choices(
	struct relay *relay, const struct request *request, struct session *session)
{
	const struct claim *claim = claim_find(relay, pending_origin(&request->pending));
	size_t count = claim ? claim->work->records.count : 0;
	for (size_t i = 0; i < count && session->choices.count == 0; i++) {
		const struct record *record = &claim->work->records.records[i];
		const char *choices = record_choices(record, claim->work->session_id);
		if (choices) {
			choices_read_json(&session->choices, span_of(choices));
		}
	}
}

void relay_claim_opened(
	struct relay *relay, const struct request *request, const struct session *session)
{
	struct claim *claim = claim_find(relay, pending_origin(&request->pending));
	if (!claim) {
		return;
	}
	struct record_claim *records = &claim->work->records;
	for (size_t i = 0; i < records->count; i++) {
		struct record *record = &records->records[i];
		tell_of_loss(relay, session, record);
		if (goes_on(session, record)) {
			record->state = RECORD_STOPPED; // record_claim_move saves it
		}
	}
	free(claim->id);
	claim->id = NULL;
	claim->peer = session->peer;
	if (session->peer->keeper) {
		keeper_flush(session->peer->keeper, on_written, claim);
	} else {
		claim_let_go(claim); // nothing is synced, so no record may say that it is here
	}
}

bool relay_claim_on_error(struct relay *relay, struct request *request, struct span error)
{
	struct error err;
	char why[FAILURE_SAID_MAX];
	struct claim *claim = claim_find(relay, pending_origin(&request->pending));
	struct json_doc *doc =
		claim && error.len > 0 ? json_doc_parse_unchecked(error, NULL) : NULL;
	long long code = doc ? json_int(doc, json_get(doc, 0, "code"), 0) : AUTH_REQUIRED;
	bool is_lost = code != AUTH_REQUIRED && code != REQUEST_CANCELLED;
	json_doc_destroy(doc);
	if (is_lost) {
		char *detail = failure_read_error(error, why);
		failure_set(&err, "SESSION_LOST", "session",
			"session \"%s\" cannot be restored: %s; its files are safe in %s: start a "
			"new session",
			claim->work->session_id, why, claim->cwd ? claim->cwd : "the workspace");
		err.detail = span_of(detail ? detail : "");
		relay_fail(relay, pending_origin(&request->pending), &err);
		free(detail);
	} else if (claim) {
		claim_let_go(claim);
	}
	return is_lost;
}

void relay_claim_peer_gone(const struct peer *peer)
{
	LIST_FOR_EACH(claim, claims_of(peer->relay), struct claim, link) {
		if (claim->peer == peer) {
			claim_let_go(claim);
		}
	}
}
