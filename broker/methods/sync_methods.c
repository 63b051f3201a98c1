/* SPDX-License-Identifier: MIT */
#include "broker/methods/sync_methods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "broker/ledger/keeper.h"
#include "broker/methods/inquiry.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"
#include "broker/session/in_flight.h"
#include "sync/checkpoint.h"

enum { DIFF_MAX = 4 << 20, NAME_MAX_BYTES = CHECKPOINT_REASON_MAX };

/* ---- finding the workspace ---- */

/* The session and workspace of a request. False if the request was answered with an error. */
struct subject_of {
	struct session *session;
	struct peer *peer;
	struct kept kept;
};

static bool refuse(struct relay *relay, const struct call *call, const char *code, const char *text)
{
	struct error err;
	relay_fail(relay, call->message.id, failure_set(&err, code, "sync", "%s", text));
	return false;
}

static bool find_session(struct relay *relay, const struct call *call, struct subject_of *out)
{
	out->session = relay_session_of(relay, &call->message);
	out->peer = out->session ? out->session->peer : NULL;
	return out->peer || refuse(relay, call, "INVALID_PARAMS",
				    "params.sessionId names no session whose agent runs");
}

/* False if its agent works in the workspace itself, and nothing is kept of it. */
static bool find_kept(struct subject_of *subject)
{
	const struct keeper *keeper = subject->peer->keeper;
	const char *root = subject->session->roots ? subject->session->roots[0] : NULL;
	return keeper && (root ? keeper_find(keeper, root, &subject->kept)
			       : keeper_at(keeper, 0, &subject->kept));
}

static bool find_workspace(struct relay *relay, const struct call *call, struct subject_of *out)
{
	if (!find_session(relay, call, out)) {
		return false;
	}
	if (!find_kept(out)) {
		return refuse(relay, call, "NOT_SYNCED",
			"the session works in the workspace itself; there is nothing to sync");
	}
	return out->kept.is_synced || refuse(relay, call, "NOT_SYNCED", "sync = none");
}

/* A member of params that is a string or a number, as text; NULL if it is missing. */
static char *param(const struct call *call, const char *name)
{
	struct span params = message_place(&call->message, PLACE_PARAMS);
	struct json_doc *doc = params.len > 0 ? json_doc_parse_unchecked(params, NULL) : NULL;
	json_node node = doc ? json_get(doc, 0, name) : JSON_NODE_NONE;
	char *text = doc ? json_string(doc, node) : NULL;
	if (doc && json_is(doc, node, JSON_NUMBER)) {
		text = mem_strndup(json_raw(doc, node));
	}
	json_doc_destroy(doc);
	return text;
}

static bool param_bool(const struct call *call, const char *name)
{
	struct span params = message_place(&call->message, PLACE_PARAMS);
	struct json_doc *doc = params.len > 0 ? json_doc_parse_unchecked(params, NULL) : NULL;
	bool value = doc && json_bool(doc, json_get(doc, 0, name), false);
	json_doc_destroy(doc);
	return value;
}

/* ---- _broker/session/status ---- */

static void write_counts(
	struct json_writer *writer, const char *key, const struct merge_counts *counts)
{
	json_write_key(writer, key);
	json_write_object(writer);
	json_write_member_int(writer, "added", counts->added);
	json_write_member_int(writer, "changed", counts->changed);
	json_write_member_int(writer, "deleted", counts->deleted);
	json_write_object_end(writer);
}

static void write_last(struct json_writer *writer, const struct last_sync *last)
{
	json_write_key(writer, "lastSync");
	if (!last->happened) {
		json_write_null(writer);
		return;
	}
	json_write_object(writer);
	json_write_member(writer, "reason", sync_reason_name(last->reason));
	json_write_member(writer, "time", last->time);
	json_write_member(writer, "error", *last->error ? last->error : NULL);
	json_write_member_int(writer, "durationMs", (uint64_t)last->duration_ms);
	json_write_member_int(writer, "files", last->files);
	write_counts(writer, "toLocal", &last->to_local);
	write_counts(writer, "toRuntime", &last->to_runtime);
	json_write_member_int(writer, "sentBytes", last->sent_bytes);
	json_write_member_int(writer, "receivedBytes", last->received_bytes);
	json_write_member_int(writer, "conflicts", last->conflicts);
	json_write_member_int(writer, "checkpoint", last->checkpoint);
	json_write_object_end(writer);
}

static bool write_status(
	struct buf *out, const struct relay *relay, const struct kept *kept, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member(&writer, "record", kept->id);
	json_write_member(&writer, "state", kept->state);
	json_write_member(&writer, "profile", relay->config.profile->name);
	json_write_member(&writer, "backend", relay->config.profile->backend);
	json_write_member(&writer, "localRoot", kept->local_root);
	json_write_member(&writer, "runtimeRoot", kept->runtime_root);
	json_write_member(&writer, "reference", kept->reference);
	json_write_member(&writer, "sync",
		kept->id ? sync_mode_name(relay->config.profile->sync.mode) : "none");
	json_write_member(&writer, "transport", kept->transport);
	write_last(&writer, kept->last);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

/* The status of a session whose agent works in the workspace itself. */
static struct kept plain(const struct subject_of *subject)
{
	static const struct last_sync none;
	const char *root = subject->session->roots ? subject->session->roots[0] : NULL;
	return (struct kept){.state = record_state_name(RECORD_ACTIVE),
		.local_root = root,
		.runtime_root = root,
		.last = &none};
}

void sync_methods_status(struct relay *relay, const struct call *call)
{
	struct subject_of subject;
	if (!find_session(relay, call, &subject)) {
		return;
	}
	if (!find_kept(&subject)) {
		subject.kept = plain(&subject);
	}
	struct inquiry *inquiry = inquiry_create(subject.peer, call, "");
	inquiry->is_ok = write_status(&inquiry->result, relay, &subject.kept, &inquiry->err);
	inquiry_answer(inquiry);
}

/* Part of a peer: whether one of its workspaces is being rolled back. */
static const struct part_type rollback_type = {.size = sizeof(bool)};

static void set_rolling_back(struct peer *peer, bool is_rolling_back)
{
	*(bool *)parts_get(&peer->parts, &rollback_type) = is_rolling_back;
}

bool sync_methods_is_rolling_back(const struct peer *peer)
{
	const bool *is_rolling_back = parts_find(&peer->parts, &rollback_type);
	return is_rolling_back && *is_rolling_back;
}

/* ---- _broker/sync, _broker/checkpoint/create ---- */

/* The keeper has ended the sync; the status has its result. */
static void on_synced(void *data, const struct error *err)
{
	struct inquiry *inquiry = data;
	struct peer *peer = inquiry->peer;
	struct kept kept;
	if (inquiry->rollback) {
		set_rolling_back(peer, false);
	}
	if (err) {
		inquiry->err = *err;
	} else if (keeper_find(peer->keeper, inquiry->from, &kept)) {
		inquiry->is_ok = write_status(&inquiry->result, peer->relay, &kept, &inquiry->err);
	} else {
		error_set(&inquiry->err, ERROR_NOT_FOUND, "%s is no longer synced", inquiry->from);
	}
	inquiry_answer(inquiry);
}

static void begin_sync(
	const struct subject_of *subject, const struct call *call, const struct sync_order *order)
{
	struct inquiry *inquiry = inquiry_create(subject->peer, call, subject->kept.store_folder);
	inquiry->from = mem_strdup(subject->kept.runtime_root);
	keeper_sync(
		subject->peer->keeper, (char *[]){inquiry->from, NULL}, order, on_synced, inquiry);
}

void sync_methods_sync(struct relay *relay, const struct call *call)
{
	struct subject_of subject;
	if (find_workspace(relay, call, &subject)) {
		begin_sync(&subject, call,
			&(struct sync_order){.reason = SYNC_REASON_TURN,
				.session = subject.session->id,
				.deletions = SYNC_DELETIONS_ASK});
	}
}

void sync_methods_create(struct relay *relay, const struct call *call)
{
	struct subject_of subject;
	if (!find_workspace(relay, call, &subject)) {
		return;
	}
	char *name = param(call, "name");
	begin_sync(&subject, call,
		&(struct sync_order){.reason = SYNC_REASON_TURN,
			.session = subject.session->id,
			.name = name,
			.deletions = SYNC_DELETIONS_ASK});
	free(name);
}

/* ---- _broker/checkpoint/rollback ---- */

/*
 * Work that will not end by itself refuses a rollback; the rollback waits for work that is about to
 * end.
 */
enum {
	LASTING = IN_FLIGHT_PROMPTS | IN_FLIGHT_WAITING | IN_FLIGHT_TERMINALS,
	ANYTHING = LASTING | IN_FLIGHT_ENDING,
};

static bool may_roll_back(struct relay *relay, const struct call *call, struct peer *peer)
{
	char text[IN_FLIGHT_TEXT_MAX];
	if (sync_methods_is_rolling_back(peer)) {
		return refuse(relay, call, "ROLLBACK_IN_PROGRESS",
			"the workspace is already being rolled back");
	}
	return !in_flight_describe(peer, LASTING, text) ||
	       refuse(relay, call, "TOOLS_IN_FLIGHT", text);
}

static void on_drained(void *data, const char *left)
{
	struct inquiry *inquiry = data;
	struct peer *peer = inquiry->peer;
	inquiry->drain = NULL;
	if (left || peer->is_down) {
		set_rolling_back(peer, false);
		error_set_reason(&inquiry->err, ERROR_UNAVAILABLE,
			left ? "TOOLS_IN_FLIGHT" : "AGENT_EXITED", "%s%s",
			left ? left : "the session's agent has ended",
			left ? " (pause-drain-timeout)" : "");
		inquiry_answer(inquiry);
		return;
	}
	keeper_sync(peer->keeper, (char *[]){inquiry->from, NULL},
		&(struct sync_order){.reason = SYNC_REASON_TURN,
			.session = inquiry->to,
			.rollback = inquiry->rollback},
		on_synced, inquiry);
}

void sync_methods_rollback(struct relay *relay, const struct call *call)
{
	struct subject_of subject;
	if (!find_workspace(relay, call, &subject) || !may_roll_back(relay, call, subject.peer)) {
		return;
	}
	char *checkpoint = param(call, "checkpoint");
	if (!checkpoint) {
		refuse(relay, call, "INVALID_PARAMS",
			"params.checkpoint: expected a checkpoint's number, or -1 for the newest");
		return;
	}
	struct inquiry *inquiry = inquiry_create(subject.peer, call, subject.kept.store_folder);
	inquiry->from = mem_strdup(subject.kept.runtime_root);
	inquiry->to = mem_strdup(subject.session->id);
	inquiry->rollback = checkpoint;
	set_rolling_back(subject.peer, true);
	inquiry->drain = drain_start(subject.peer, ANYTHING, on_drained, inquiry);
}

/* ---- _broker/checkpoint/list ---- */

static bool run_list(struct inquiry *inquiry, struct store *store, struct error *err)
{
	struct checkpoint *list;
	size_t count;
	struct checkpoint_damage damage;
	struct json_writer writer;
	if (!checkpoint_list(store, &list, &count, &damage, err)) {
		return false;
	}
	json_write_begin(&writer, &inquiry->result);
	json_write_object(&writer);
	json_write_key(&writer, "checkpoints");
	json_write_array(&writer);
	for (size_t i = 0; i < count; i++) {
		json_write_object(&writer);
		checkpoint_write(&writer, &list[i]);
		json_write_object_end(&writer);
	}
	json_write_array_end(&writer);
	char text[CHECKPOINT_DAMAGE_MAX];
	json_write_member(&writer, "damaged", checkpoint_damage_text(&damage, text));
	json_write_object_end(&writer);
	free(list);
	return json_write_end(&writer, err);
}

void sync_methods_list(struct relay *relay, const struct call *call)
{
	struct subject_of subject;
	if (find_workspace(relay, call, &subject)) {
		struct inquiry *inquiry =
			inquiry_create(subject.peer, call, subject.kept.store_folder);
		inquiry->run = run_list;
		inquiry_submit(inquiry);
	}
}

/* ---- _broker/checkpoint/diff ---- */

static bool append_text(void *data, struct span text)
{
	return buf_append(data, text, NULL);
}

static bool run_diff(struct inquiry *inquiry, struct store *store, struct error *err)
{
	struct checkpoint from;
	struct checkpoint to;
	struct buf text;
	struct json_writer writer;
	if (!checkpoint_find(store, inquiry->from, &from, err) ||
		!checkpoint_find(store, inquiry->to ? inquiry->to : "-1", &to, err)) {
		return false;
	}
	buf_init(&text, DIFF_MAX);
	bool is_cut = false;
	struct checkpoint_reader reader = {append_text, &text};
	bool ok = checkpoint_diff(store, &from.tree, &to.tree,
		inquiry->wants_stat ? CHECKPOINT_STAT : CHECKPOINT_PATCH, &reader, err);
	if (!ok && err->code == ERROR_UNAVAILABLE) {
		is_cut = ok = true; // over DIFF_MAX
	}
	if (ok) {
		json_write_begin(&writer, &inquiry->result);
		json_write_object(&writer);
		json_write_member_int(&writer, "from", from.number);
		json_write_member_int(&writer, "to", to.number);
		json_write_member_string(&writer, "diff", buf_span(&text));
		json_write_member_bool(&writer, "truncated", is_cut);
		json_write_object_end(&writer);
		ok = json_write_end(&writer, err);
	}
	buf_finish(&text);
	return ok;
}

void sync_methods_diff(struct relay *relay, const struct call *call)
{
	struct subject_of subject;
	if (!find_workspace(relay, call, &subject)) {
		return;
	}
	char *from = param(call, "from");
	if (!from) {
		refuse(relay, call, "INVALID_PARAMS",
			"params.from: expected a checkpoint's number, or -1 for the newest");
		return;
	}
	struct inquiry *inquiry = inquiry_create(subject.peer, call, subject.kept.store_folder);
	inquiry->from = from;
	inquiry->to = param(call, "to");
	inquiry->wants_stat = param_bool(call, "stat");
	inquiry->run = run_diff;
	inquiry_submit(inquiry);
}
