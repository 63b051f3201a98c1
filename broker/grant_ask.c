/* SPDX-License-Identifier: MIT */
#include "broker/relay_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "broker/grant.h"
#include "broker/grant_relay.h"

enum {
	TITLE_MAX = 512,         // bytes of a question's title
	DIFF_MAX = 256 * 1024,   // bytes of new text, as JSON spells it, that are shown
	COMMAND_MAX = 64 * 1024, // bytes of a command that are shown
};

/* ---- the question ---- */

static const char options_once[] =
	"[{\"optionId\":\"allow\",\"name\":\"Allow\",\"kind\":\"allow_once\"},"
	"{\"optionId\":\"reject\",\"name\":\"Reject\",\"kind\":\"reject_once\"}]";

static const char options_always[] =
	"[{\"optionId\":\"allow\",\"name\":\"Allow\",\"kind\":\"allow_once\"},"
	"{\"optionId\":\"allow-always\",\"name\":\"Always allow in this session\","
	"\"kind\":\"allow_always\"},"
	"{\"optionId\":\"reject\",\"name\":\"Reject\",\"kind\":\"reject_once\"},"
	"{\"optionId\":\"reject-always\",\"name\":\"Always reject in this session\","
	"\"kind\":\"reject_always\"}]";

/* How an operation is shown: its title's first word and its tool kind. */
static const struct {
	const char *verb;
	const char *kind;
} shown[] = {
	[POLICY_READ] = {"Read", "read"},
	[POLICY_WRITE] = {"Write", "edit"},
	[POLICY_TERMINAL] = {"Run", "execute"},
};

static void write_member(struct json_writer *writer, const char *key, const char *value)
{
	json_write_key(writer, key);
	json_write_text(writer, value);
}

static void write_text_content(struct json_writer *writer, struct span text)
{
	json_write_object(writer);
	write_member(writer, "type", "content");
	json_write_key(writer, "content");
	json_write_object(writer);
	write_member(writer, "type", "text");
	json_write_key(writer, "text");
	json_write_string(writer, text);
	json_write_object_end(writer);
	json_write_object_end(writer);
}

/* The new text as a diff; what the file holds by now is not known here. */
static void write_diff(struct json_writer *writer, const struct call *call, const char *path)
{
	struct span text = message_place(&call->message, PLACE_CONTENT);
	if (text.len > DIFF_MAX) {
		char note[96];
		int len = snprintf(note, sizeof(note),
			"%zu bytes of new content: more than is shown here", text.len);
		write_text_content(writer, (struct span){note, (size_t)len});
		return;
	}
	json_write_object(writer);
	write_member(writer, "type", "diff");
	write_member(writer, "path", path);
	json_write_key(writer, "newText");
	json_write_raw(writer, text.len > 0 && text.data[0] == '"' ? text : SPAN_LITERAL("\"\""));
	json_write_object_end(writer);
}

static void write_command(struct json_writer *writer, const struct subject *subject)
{
	struct buf text;
	char *command = subject_text_create(subject);
	size_t len = strlen(command);
	buf_init(&text, SIZE_MAX / 2);
	bool ok = buf_append(
		&text, (struct span){command, len < COMMAND_MAX ? len : COMMAND_MAX}, NULL);
	if (len > COMMAND_MAX) {
		ok = ok &&
		     buf_append_format(&text, NULL, "\n… and %zu bytes more", len - COMMAND_MAX);
	}
	if (subject->cwd) {
		ok = ok && buf_append_format(&text, NULL, "\n\nin %s", subject->cwd);
	}
	if (ok) {
		write_text_content(writer, buf_span(&text));
	}
	buf_finish(&text);
	free(command);
}

static void write_content(struct json_writer *writer, const struct call *call,
	const struct subject *subject, const char *path)
{
	if (subject->operation == POLICY_READ) {
		return;
	}
	json_write_key(writer, "content");
	json_write_array(writer);
	if (subject->operation == POLICY_WRITE) {
		write_diff(writer, call, path);
	} else {
		write_command(writer, subject);
	}
	json_write_array_end(writer);
}

static void write_location(struct json_writer *writer, const char *path)
{
	json_write_key(writer, "locations");
	json_write_array(writer);
	json_write_object(writer);
	write_member(writer, "path", path);
	json_write_object_end(writer);
	json_write_array_end(writer);
}

static void write_tool_call_id(struct json_writer *writer, const struct request *request)
{
	char id[40];
	snprintf(id, sizeof(id), "acp-broker-%llu", (unsigned long long)request->pending.id);
	write_member(writer, "toolCallId", id);
}

static void write_tool_call(struct json_writer *writer, const struct request *request,
	const struct call *call, const struct subject *subject)
{
	char text[TITLE_MAX];
	char title[TITLE_MAX + 16];
	char *path = subject->paths
	                     ? relay_map_path(request->peer, PATH_TO_LOCAL, subject->paths[0])
	                     : NULL;
	snprintf(title, sizeof(title), "%s %s", shown[subject->operation].verb,
		path ? path : subject_text(subject, text, sizeof(text)));
	json_write_key(writer, "toolCall");
	json_write_object(writer);
	write_tool_call_id(writer, request);
	write_member(writer, "title", title);
	write_member(writer, "kind", shown[subject->operation].kind);
	write_member(writer, "status", "pending");
	if (path) {
		write_location(writer, path);
	}
	write_content(writer, call, subject, path);
	json_write_object_end(writer);
	free(path);
}

/* As the editor knows it; of a session that is not known as the agent calls it. */
static void write_session_id(
	struct json_writer *writer, const struct request *request, const struct call *call)
{
	struct span raw = message_place(&call->message, PLACE_SESSION_ID);
	json_write_key(writer, "sessionId");
	if (request->session_id) {
		json_write_text(writer, request->session_id);
	} else {
		json_write_raw(writer, raw.len > 0 ? raw : SPAN_LITERAL("\"\""));
	}
}

static bool write_question(struct relay *relay, const struct request *request,
	const struct call *call, const struct subject *subject, struct error *err)
{
	struct json_writer writer;
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_object(&writer);
	write_member(&writer, "jsonrpc", "2.0");
	json_write_key(&writer, "id");
	json_write_int(&writer, (long long)request->pending.id);
	write_member(&writer, "method", "session/request_permission");
	json_write_key(&writer, "params");
	json_write_object(&writer);
	write_session_id(&writer, request, call);
	write_tool_call(&writer, request, call, subject);
	json_write_key(&writer, "options");
	json_write_raw(&writer, span_of(request->options));
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

/* The editor shows the question's tool call as done, or as failed, and no longer as waiting. */
static void close_tool_call(struct relay *relay, const struct request *request, bool allowed)
{
	struct json_writer writer;
	if (relay->editor_has_ended || !request->session_id) {
		return;
	}
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_object(&writer);
	write_member(&writer, "jsonrpc", "2.0");
	write_member(&writer, "method", "session/update");
	json_write_key(&writer, "params");
	json_write_object(&writer);
	write_member(&writer, "sessionId", request->session_id);
	json_write_key(&writer, "update");
	json_write_object(&writer);
	write_member(&writer, "sessionUpdate", "tool_call_update");
	write_tool_call_id(&writer, request);
	write_member(&writer, "status", allowed ? "completed" : "failed");
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	if (json_write_end(&writer, NULL)) {
		relay_send_editor(relay, buf_span(&relay->scratch));
	}
}

void grant_close_question(struct relay *relay, const struct request *request)
{
	if (request->subject) {
		close_tool_call(relay, request, false);
	}
}

/* ---- the answer ---- */

/* "Always" holds for what was asked, in the session it was asked in. */
static void remember(
	struct relay *relay, const struct request *request, enum policy_decision decision)
{
	bool is_always = decision == POLICY_ALLOW_ALWAYS || decision == POLICY_REJECT_ALWAYS;
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (!is_always || !session) {
		return;
	}
	if (memory_has_room(session->memory, request->subject)) {
		memory_add(session->memory, request->subject, decision == POLICY_ALLOW_ALWAYS);
	} else {
		log_warning("session %s: no more than %d answers are remembered", session->id,
			MEMORY_MAX);
	}
}

static void refuse(struct peer *peer, const struct call *call, const struct grant_answer *answer,
	const struct failure *failure)
{
	char text[GRANT_REASON_MAX + MESSAGE_METHOD_MAX + 32];
	snprintf(text, sizeof(text), "%s: refused: %s", call->message.method,
		failure ? failure->message : answer->reason);
	peer_fail(peer, call->message.id,
		&(struct failure){
			failure ? failure->code : "PERMISSION_DENIED", "session", text, {NULL, 0}});
}

/* The call that was set aside goes on its way, or is refused. */
static void act(struct peer *peer, struct request *request, const struct grant_answer *answer,
	const struct failure *failure)
{
	struct relay *relay = peer->relay;
	struct frame_reader *reader;
	struct error err;
	bool allowed = grant_decision_allows(answer->decision);
	relay->held_bytes -= parcel_size(request->parcel);
	const struct subject *subject = request->subject;
	struct call call = {.frame = parcel_open(request->parcel, &reader),
		.was_granted = true,
		.resolved = subject->is_resolved ? subject->paths : NULL};
	call.from = reader;
	if (!message_read(&call.message, call.frame, &err)) {
		log_error("%s: a message set aside cannot be read again: %s", peer->hop, err.text);
	} else {
		remember(relay, request, answer->decision);
		close_tool_call(relay, request, allowed);
		if (allowed) {
			splice_clear(&relay->splice);
			relay_pass_agent_request(peer, &call);
		} else {
			refuse(peer, &call, answer, failure);
		}
	}
	parcel_destroy(request->parcel);
	request->parcel = NULL;
}

static void on_decided(struct relay *relay, struct request *request, const struct call *answer,
	const struct failure *failure)
{
	struct grant_answer decided = {
		.decision = POLICY_REJECT_ONCE, .by = grant_by_of_failure(failure)};
	if (answer && answer->message.is_error) {
		grant_answer_read_error(&decided, message_place(&answer->message, PLACE_ERROR));
	} else if (answer) {
		grant_answer_read(&decided, message_place(&answer->message, PLACE_RESULT),
			span_of(request->options));
	}
	grant_note_decided(relay, request, &decided);
	if (!request->peer->is_down) {
		act(request->peer, request, &decided, failure);
	}
}

/* ---- asking ---- */

static bool send_question(struct peer *peer, struct request *request, const struct call *call,
	const struct subject *subject, struct error *err)
{
	struct relay *relay = peer->relay;
	if (relay->held_bytes + call->frame->bytes.len > RELAY_HELD_MAX) {
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"%d MiB of requests wait for a person's answer already",
			RELAY_HELD_MAX >> 20);
	}
	/* Under the agent's own id, so that the agent can take the question back. */
	if (!pending_add(&relay->asked_editor, &request->pending, call->message.id, err)) {
		return false;
	}
	if (!write_question(relay, request, call, subject, err)) {
		pending_remove(&relay->asked_editor, &request->pending);
		return false;
	}
	return true;
}

void grant_ask(
	struct peer *peer, const struct call *call, const struct subject *subject, const char *rule)
{
	struct relay *relay = peer->relay;
	struct error err;
	struct request *request = request_create(peer, NULL);
	struct session *session = relay_session_of_agent(peer, &call->message);
	bool can_remember = session && memory_has_room(session->memory, subject);
	request->on_answer = on_decided;
	request->subject = subject_copy(subject);
	request->options = can_remember ? options_always : options_once;
	request->session_id = session ? mem_strdup(session->id) : NULL;
	grant_note_asked(request, subject, rule);
	if (!send_question(peer, request, call, subject, &err)) {
		peer_fail(peer, call->message.id,
			&(struct failure){failure_code_of(&err), "session", err.text, {NULL, 0}});
		request_destroy(request);
		return;
	}
	request->parcel = parcel_create(call->from, call->frame, relay->places);
	relay->held_bytes += parcel_size(request->parcel);
	relay_send_editor(relay, buf_span(&relay->scratch));
	relay_watch_question(request);
}

static const struct failure cancelled = {"PERMISSION_DENIED", "session",
	"the session was cancelled before anyone answered", {NULL, 0}};

void grant_cancel_session(struct relay *relay, const char *session_id)
{
	struct pending *pending = NULL;
	do {
		pending = NULL;
		LIST_FOR_EACH(at, &relay->asked_editor.order, struct pending, order_link) {
			struct request *request = CONTAINER_OF(at, struct request, pending);
			if (request->on_answer == on_decided && request->session_id &&
				strcmp(request->session_id, session_id) == 0) {
				pending = at;
				break;
			}
		}
		if (pending) {
			struct request *request = CONTAINER_OF(pending, struct request, pending);
			pending_remove(&relay->asked_editor, pending);
			relay_withdraw_question(relay, request);
			on_decided(relay, request, NULL, &cancelled);
			request_destroy(request);
		}
	} while (pending);
}
