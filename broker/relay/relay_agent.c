/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_agent.h"

#include <stdio.h>

#include "acp/rewrite.h"
#include "base/log.h"
#include "base/real_path.h"
#include "base/secrets.h"
#include "broker/gate/agent_gate.h"
#include "broker/gate/grant_ask.h"
#include "broker/gate/grant_audit.h"
#include "broker/gate/grant_login.h"
#include "broker/gate/grant_writes.h"
#include "broker/methods/pause.h"
#include "broker/relay/error_hint.h"
#include "broker/relay/login_look.h"
#include "broker/relay/mode_guard.h"
#include "broker/relay/relay_agent_methods.h"
#include "broker/relay/relay_due.h"
#include "broker/relay/relay_mcp_exec.h"
#include "broker/relay/relay_order.h"
#include "broker/relay/relay_toolhost.h"
#include "broker/relay/relay_turn.h"
#include "broker/relay/relay_watch.h"
#include "broker/relay/restore.h"
#include "broker/session/answer.h"
#include "broker/session/root_names.h"
#include "broker/session/serving.h"
#include "broker/session/tool_call_id.h"
#include "broker/session/unanswered.h"

/* ---- requests ---- */

/* Replaces the agent's own names by the editor's: sessions, paths, terminals. */
static bool edit_names(
	struct peer *peer, const struct call *call, const struct method *method, struct error *err)
{
	struct relay *relay = peer->relay;
	const char *name = method && method->name ? method->name : "";
	if (relay->sessions.aliases > 0 && message_hit(&call->message, PLACE_SESSION_ID)) {
		const struct session *session = relay_session_of_agent(peer, &call->message);
		if (!relay_edit_session(relay, call, session, session ? session->id : NULL, err)) {
			return false;
		}
	}
	return rewrite_paths(relay_map_of(peer, method), PATH_TO_LOCAL, &call->message, name,
		       call->edits, err) &&
	       relay_toolhost_edit(peer, call, err);
}

/*
 * If the agent's files are elsewhere, the editor can serve only files in the session's directories.
 * Any other path belongs to another machine, and ".." would lead from one to the other.
 * grant_resolve has checked where links lead.
 */
static bool check_place(const struct peer *peer, const struct call *call, struct error *err)
{
	const struct method *method = call->method;
	bool is_terminal = method_asks(method, POLICY_TERMINAL);
	bool is_file = method_asks(method, POLICY_READ) || method_asks(method, POLICY_WRITE);
	if (!relay_editor_serves_elsewhere(peer) || (!is_terminal && !is_file)) {
		return true;
	}
	enum place place = is_terminal ? PLACE_CWD : PLACE_PATH;
	struct span value = message_place(&call->message, place);
	if (value.len == 0 || span_is(value, "null")) {
		return true;
	}
	char path[FILE_PATH_MAX];
	size_t prefix;
	struct span with;
	return (message_string(&call->message, place, path, sizeof(path)) && !path_goes_up(path) &&
		       path_map_find(&peer->map, PATH_TO_LOCAL, span_of(path), &prefix, &with)) ||
	       error_set_reason(err, ERROR_DENIED, "SECURITY_VIOLATION",
		       "%s: refused: the editor serves only files in the session's directories "
		       "(toolhost = editor)",
		       call->message.method);
}

static void refuse(struct peer *peer, const struct call *call, struct error *err)
{
	peer_fail(peer, call->message.id, error_at(err, "relay"));
}

static bool send_request(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	const struct method *method = request->method;
	return relay_edit_minted(
		       call, message_hit(&call->message, PLACE_ID), request->pending.id, err) &&
	       (!method->on_send || method->on_send(relay, request, call, err)) &&
	       edit_names(request->peer, call, method, err) &&
	       relay_forward_editor(relay, call, err);
}

static void offer_login(const struct request *request, const struct login_url *login)
{
	struct relay *relay = request->peer->relay;
	grant_login_offer(request->peer,
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL,
		login);
}

void relay_pass_agent_request(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	if (call->method->serve) {
		call->method->serve(peer, call);
		return;
	}
	if (relay_toolhost_serves(peer, call->message.method)) {
		relay_toolhost_call(peer, call);
		return;
	}
	struct error err;
	if (!check_place(peer, call, &err)) {
		refuse(peer, call, &err);
		return;
	}
	struct request *request = request_create(peer, call->method);
	if (!pending_add(&relay->asked_editor, &request->pending, call->message.id, &err)) {
		refuse(peer, call, &err);
		request_destroy(request);
		return;
	}
	grant_note_forwarded(request, call);
	if (call->method->result_when_gone) {
		const struct session *session = relay_session_of_agent(peer, &call->message);
		request->session_id = session ? mem_strdup(session->id) : NULL;
		relay_watch_question(request);
	}
	struct login_url login;
	bool is_login = login_look_elicitation(call, &login);
	if (!send_request(relay, request, call, &err)) {
		pending_remove(&relay->asked_editor, &request->pending);
		refuse(peer, call, &err);
		request_destroy(request);
	} else if (is_login) {
		offer_login(request, &login);
	}
}

static void refuse_terminal(struct peer *peer, const struct call *call)
{
	struct error err;
	peer_fail(peer, call->message.id,
		failure_set(&err, "PERMISSION_DENIED", "session",
			"%s: refused: with toolhost = editor the command would run on the editor's "
			"machine, in the user's own files, but this agent works elsewhere. To "
			"allow that, set editor-terminals = yes in the profile",
			call->message.method));
}

void relay_on_agent_request(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	const struct method *method = call->method;
	if (relay->editor_has_ended || relay->is_ending) {
		peer_answer_when_gone(peer, call->message.id, method);
		return;
	}
	if (agent_gate_request(peer, call)) {
		return;
	}
	if (relay_refuses_terminals(peer) && method->is_terminal) {
		refuse_terminal(peer, call);
	} else if (!method->raise || !method->raise(peer, call)) {
		relay_pass_agent_request(peer, call);
	}
}

/* ---- notifications ---- */

/*
 * Cancels the agent's request: at the editor, under the id that the editor knows, or in the broker
 * itself.
 */
static void on_cancel_request(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	struct error err;
	struct span id = message_place(&call->message, PLACE_REQUEST_ID);
	if (id.len > 0 && desk_cancel_request(&relay->desk, peer, id)) {
		return;
	}
	LIST_FOR_EACH(pending, &relay->asked_editor.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (request->peer != peer || !span_equals(pending_origin(pending), id) ||
			id.len == 0) {
			continue;
		}
		if (!relay_edit_minted(call, message_hit(&call->message, PLACE_REQUEST_ID),
			    pending->id, &err) ||
			!relay_forward_editor(relay, call, &err)) {
			log_failure(LOG_LEVEL_WARNING, &err, "%s: $/cancel_request: %s", peer->hop,
				err.text);
		}
		return;
	}
	log_debug("%s: $/cancel_request for a request that was answered or never made", peer->hop);
}

static void on_notification(struct peer *peer, const struct call *call)
{
	struct error err;
	if (call->method->means == MEANS_CANCEL_REQUEST) {
		on_cancel_request(peer, call);
		return;
	}
	if (agent_gate_notification(peer, call) || restore_hides(peer, call)) {
		return;
	}
	mode_guard_on_update(peer, call);
	relay_mcp_exec_on_update(peer, call);
	grant_note_shown(peer, call);
	grant_writes_note(peer, call);
	if (!edit_names(peer, call, call->method, &err) ||
		!relay_forward_editor(peer->relay, call, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "%s: notification %s: %s", peer->hop,
			call->message.method, err.text);
	}
}

/* ---- answers to the editor's requests ---- */

static bool edit_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	const struct method *method = request->method;
	return call->message.is_error || !method || !method->on_result ||
	       method->on_result(relay, request, call, err);
}

/* Whether another answer has replaced this error. */
static bool was_replaced(struct relay *relay, struct request *request, const struct call *call)
{
	const struct method *method = request->method;
	return call->message.is_error && method && method->on_error &&
	       method->on_error(relay, request, message_place(&call->message, PLACE_ERROR));
}

void relay_pass_response(struct relay *relay, struct request *request, const struct call *call)
{
	struct error err;
	login_look_error(request->peer, request, call);
	if (was_replaced(relay, request, call)) {
		request_destroy(request);
		return;
	}
	if (request->method && request->method->before_answer) {
		request->method->before_answer(relay, request);
	}
	if (edit_result(relay, request, call, &err) &&
		edit_names(request->peer, call, request->method, &err) &&
		error_hint_edit(request->peer, request, call, &err) &&
		relay_edit_id(call, pending_origin(&request->pending), &err) &&
		relay_forward_editor(relay, call, &err)) {
		if (request->method && request->method->on_over) {
			request->method->on_over(relay, request);
		}
		relay_order_note(relay, pending_origin(&request->pending));
		request_destroy(request);
		return;
	}
	relay_fail_request(relay, request, error_at(&err, "relay"));
}

static void on_response(struct peer *peer, const struct call *call)
{
	struct pending *pending = pending_find(&peer->asked, call->message.id);
	if (!pending) {
		relay_due_take_late(peer, call);
		return;
	}
	struct request *request = CONTAINER_OF(pending, struct request, pending);
	const struct method *method = request->method;
	pending_remove(&peer->asked, pending);
	if (request->on_answer) {
		request->on_answer(peer->relay, request, call, NULL);
		request_destroy(request);
	} else if (!method || !method->raise_answered || !method->raise_answered(request, call)) {
		relay_pass_response(peer->relay, request, call);
	}
}

/* ---- lines that are not messages ---- */

/* Tells the editor, which waits for it, that an answer cannot be used. */
static bool fail_editors_request(struct peer *peer, struct span id, const struct error *failure)
{
	struct pending *pending = pending_find(&peer->asked, id);
	if (!pending) {
		return false;
	}
	pending_remove(&peer->asked, pending);
	relay_fail_request(peer->relay, CONTAINER_OF(pending, struct request, pending), failure);
	return true;
}

static void on_broken_line(
	struct peer *peer, const struct frame *frame, const char *code, const struct error *err)
{
	struct error told;
	struct span id = message_broken_id(frame);
	if (id.len > 0 && message_broken_has_method(frame)) {
		peer_fail(peer, id,
			failure_set(&told, code, "relay", "message not understood: %s", err->text));
		log_failure(LOG_LEVEL_WARNING, &told, "%s: %s", peer->hop, told.text);
		return;
	}
	failure_set(&told, code, "relay", "the agent's answer cannot be used: %s", err->text);
	if (id.len > 0 && fail_editors_request(peer, id, &told)) {
		log_failure(LOG_LEVEL_WARNING, &told, "%s: %s", peer->hop, told.text);
		return;
	}
	if (frame->kind == FRAME_TOO_LONG) {
		log_failure(LOG_LEVEL_WARNING, err, "%s: a notification was skipped: %s", peer->hop,
			err->text);
		return;
	}
	agent_note_noise(peer->agent, frame->bytes);
	secrets_log_line(peer->relay->config.secrets, peer->hop, frame->bytes,
		frame->bytes.len < frame->length);
}

void relay_on_agent_call(struct peer *peer, const struct call *call)
{
	if (call->message.kind == MESSAGE_NOTIFICATION) {
		on_notification(peer, call);
	} else if (!peer->is_down) {
		relay_on_agent_request(peer, call); // otherwise nobody waits for an answer
	}
}

/*
 * Whether the agent sends a further request although it does not read the answers to earlier ones.
 */
static bool asks_too_much(const struct peer *peer, const struct frame *frame)
{
	return relay_agent_is_flooded(peer) && frame->kind == FRAME_MESSAGE &&
	       json_check_find(frame->check, PLACE_METHOD) &&
	       json_check_find(frame->check, PLACE_ID);
}

/*
 * The broker's questions and notices are tool calls with ids of their own. An agent that updated
 * one could replace what the user is asked. If this broker asks nothing, it does not check, because
 * the agent may itself be a broker with such ids.
 */
static bool names_our_tool_call(struct peer *peer, const struct call *call)
{
	const struct policy *policy = peer->relay->config.profile->policy;
	bool asks =
		policy_is_given(policy) || relay_uses_toolhost(peer) || !relay_shares_files(peer);
	if (call->message.kind == MESSAGE_RESPONSE || !asks ||
		!tool_call_id_is_named(&call->message)) {
		return false;
	}
	log_warning("%s: %s was dropped: it names one of the broker's own tool calls", peer->hop,
		call->message.method);
	if (call->message.kind == MESSAGE_REQUEST) {
		struct error err;
		peer_fail(peer, call->message.id,
			failure_set(&err, "INVALID_PARAMS", "relay",
				"toolCallId: ids that begin with acp-broker- are the broker's "
				"own"));
	}
	return true;
}

bool relay_on_agent_frame(void *data, const struct frame *frame)
{
	struct peer *peer = data;
	struct relay *relay = peer->relay;
	struct error err;
	struct call call = {.from = agent_link(peer->agent)->frames,
		.frame = frame,
		.edits = &relay->edits,
		.sender = peer};
	if (link_is_over(&relay->editor) || relay_turn_is_full(peer) || pause_holds_agent(peer) ||
		asks_too_much(peer, frame)) {
		return false;
	}
	peer->heard_at = ev_now(relay->config.loop);
	relay_watch_memory(relay, frame->length);
	if (frame->kind != FRAME_MESSAGE) {
		trace_noise(relay->config.trace, peer->hop, frame->bytes, frame->length);
		on_broken_line(peer, frame,
			frame->kind == FRAME_TOO_LONG ? "MESSAGE_TOO_LONG" : "INVALID_MESSAGE",
			&frame->error);
		return true;
	}
	trace_message(relay->config.trace, peer->hop, true, frame->bytes);
	if (!message_read(&call.message, frame, &err) ||
		!agent_gate_takes(peer, &call.message, &err)) {
		on_broken_line(peer, frame, "INVALID_MESSAGE", &err);
		return true;
	}
	if (call.message.kind != MESSAGE_RESPONSE) {
		call.method = relay_agent_method_of(&call.message);
	}
	splice_clear(&relay->edits);
	if (names_our_tool_call(peer, &call)) {
		return true;
	}
	usage_note_agent(peer, &call);
	if (call.message.kind == MESSAGE_RESPONSE) {
		on_response(peer, &call);
	} else if (!relay_turn_holds_message(peer, &call)) {
		relay_on_agent_call(peer, &call);
	}
	return true;
}

void relay_on_agent_drained(void *data)
{
	struct peer *peer = data;
	link_resume(&peer->relay->editor);
	link_resume(agent_link(peer->agent));
	if (peer->toolhost) {
		toolhost_resume(peer->toolhost);
	}
}
