/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_editor.h"

#include <assert.h>
#include <stdio.h>

#include "acp/rewrite.h"
#include "base/log.h"
#include "broker/gate/grant_ask.h"
#include "broker/gate/grant_audit.h"
#include "broker/gate/grant_deletions.h"
#include "broker/gate/grant_hosts.h"
#include "broker/gate/grant_login.h"
#include "broker/methods/own_methods.h"
#include "broker/methods/pause.h"
#include "broker/methods/sandbox_call.h"
#include "broker/relay/handshake.h"
#include "broker/relay/listing.h"
#include "broker/relay/listing_records.h"
#include "broker/relay/mode_guard.h"
#include "broker/relay/relay_agent.h"
#include "broker/relay/relay_claim.h"
#include "broker/relay/relay_due.h"
#include "broker/relay/relay_mcp.h"
#include "broker/relay/relay_mcp_exec.h"
#include "broker/relay/relay_methods.h"
#include "broker/relay/relay_order.h"
#include "broker/relay/relay_revive.h"
#include "broker/relay/relay_roots.h"
#include "broker/relay/relay_sync.h"
#include "broker/relay/relay_turn.h"
#include "broker/relay/relay_watch.h"
#include "broker/relay/restore.h"
#include "broker/session/answer.h"
#include "broker/session/root_names.h"
#include "broker/session/unanswered.h"

/* ---- requests ---- */

static void refuse(
	struct relay *relay, const struct call *call, const char *stage, struct error *err)
{
	relay_fail(relay, call->message.id, error_at(err, stage));
}

static bool send_request(struct relay *relay, struct peer *peer, struct request *request,
	const struct call *call, struct error *err)
{
	const struct method *method = request->method;
	const struct session *session = relay_session_of(relay, &call->message);
	return relay_edit_minted(
		       call, message_hit(&call->message, PLACE_ID), request->pending.id, err) &&
	       (!method->on_send || method->on_send(relay, request, call, err)) &&
	       (!method->opens_session || relay_mcp_edit(peer, request, call, err)) &&
	       rewrite_paths(relay_map_of(peer, method), PATH_TO_RUNTIME, &call->message,
		       call->message.method, call->edits, err) &&
	       relay_edit_session(relay, call, session, session ? session->agent_id : NULL, err) &&
	       peer_forward(peer, call, err);
}

void relay_pass_editor_request(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	struct error err;
	if (link_is_over(agent_link(peer->agent))) {
		error_set(&err, ERROR_LIMIT,
			"the agent does not read: more than max-queue bytes wait for it");
		refuse(relay, call, "relay", &err);
		return;
	}
	struct request *request = request_create(peer, call->method);
	restore_claim(relay, request, call);
	if (!pending_add(&peer->asked, &request->pending, call->message.id, &err)) {
		refuse(relay, call, "relay", &err);
		request_destroy(request);
		return;
	}
	if (!send_request(relay, peer, request, call, &err)) {
		pending_remove(&peer->asked, &request->pending);
		relay_fail_request(relay, request, error_at(&err, "relay"));
		return;
	}
	relay_due_watch(request);
}

/*
 * The agent for a session in this directory: one that has the directory, or the session's earlier
 * one; NULL: any.
 */
static struct peer *peer_to_open(
	struct relay *relay, const struct session *session, const struct call *call)
{
	struct peer *peer = relay_peer_with_root(relay, call);
	struct peer *home = session ? relay_peer_of_number(relay, session->agent_number) : NULL;
	char cwd[FILE_PATH_MAX];
	if (!peer && home && relay_revive(home)) {
		return home;
	}
	bool has_cwd = message_string(&call->message, PLACE_CWD, cwd, sizeof(cwd));
	return peer || !has_cwd ? peer : relay_revive_with_root(relay, cwd);
}

/* The agent for a request; NULL if the request was answered. */
static struct peer *route_request(struct relay *relay, const struct call *call)
{
	const struct method *method = call->method;
	struct session *session = relay_session_of(relay, &call->message);
	bool is_needed = method->route == ROUTE_SESSION;
	if (session && restore_holds(relay, session, is_needed, call)) {
		return NULL;
	}
	if (session && session->peer) {
		return session->peer;
	}
	bool is_over = false;
	struct peer *peer = method->opens_session ? peer_to_open(relay, session, call) : NULL;
	if (method->route == ROUTE_LIST) {
		peer = listing_peer(relay, call, &is_over);
	} else if (!peer) {
		peer = relay->ops->current_peer(relay);
	}
	if (is_over) {
		listing_records_drop(relay, call->message.id);
		relay_answer(relay, call->message.id, span_of(listing_empty));
	} else if (!peer) {
		relay_fail(relay, call->message.id, &relay_is_ending);
	}
	return peer;
}

/*
 * Whether a request names a session that is not open, for an agent whose files are synced with a
 * workspace. The agent would work on files without a workspace.
 */
static bool is_of_no_session(struct peer *peer, const struct call *call)
{
	return message_place(&call->message, PLACE_SESSION_ID).len > 0 &&
	       !relay_session_of(peer->relay, &call->message) && relay_needs_sync(peer);
}

static bool refuses_unopened(struct peer *peer, const struct call *call)
{
	const struct method *method = call->method;
	struct error err;
	if (method->opens_session || method->takes_unopened || !is_of_no_session(peer, call)) {
		return false;
	}
	relay_fail(peer->relay, call->message.id,
		failure_set(&err, "INVALID_PARAMS", "session",
			"%s: sessionId names no session that is open here: open it with "
			"session/new, session/load or session/resume first",
			call->message.method));
	return true;
}

static void dispatch_request(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	const struct method *method = call->method;
	struct error err;
	if (!peer->is_ready) {
		if (!relay_wait_until_ready(peer, call, &err)) {
			refuse(relay, call, "prepare", &err);
		}
		return;
	}
	if (pause_refuses(peer, call) || refuses_unopened(peer, call)) {
		return;
	}
	bool is_greeting = method->means == MEANS_GREETING;
	if (!peer->was_greeted && !peer->is_greeting && !is_greeting && handshake_was_made(relay)) {
		handshake_repeat(peer);
	}
	if (method->raise && method->raise(peer, call)) {
		return;
	}
	if (!method->opens_session || call->came_from == STAGE_ROOTS ||
		!relay_open_roots(peer, call)) {
		relay_pass_editor_request(peer, call);
	}
}

static void on_request(struct relay *relay, const struct call *call)
{
	if (relay->is_ending && call_is_new(call)) {
		relay_fail(relay, call->message.id, &relay_is_ending);
		return;
	}
	if (call->method->route == ROUTE_OWN) {
		own_methods_call(relay, call);
		return;
	}
	if (handshake_refuses(relay, call) || relay_order_holds(relay, call)) {
		return;
	}
	relay_order_begin(relay, call);
	bool is_held = relay_claim_holds(relay, call) || listing_records_hold(relay, call);
	struct peer *peer = is_held ? NULL : route_request(relay, call);
	if (!peer) {
		return;
	}
	dispatch_request(peer, call);
}

/* ---- notifications ---- */

/* $/cancel_request applies to one hop: it names the id that this hop gave the request. */
static void on_cancel_request(struct relay *relay, const struct call *call)
{
	struct error err;
	struct span id = message_place(&call->message, PLACE_REQUEST_ID);
	if (restore_is_own(id) || sandbox_calls_cancel(relay, id) ||
		desk_cancel_request(&relay->desk, NULL, id)) {
		return;
	}
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		struct pending *pending = pending_find_origin(&peer->asked, id);
		if (!pending) {
			continue;
		}
		if (!relay_edit_minted(call, message_hit(&call->message, PLACE_REQUEST_ID),
			    pending->id, &err) ||
			!peer_forward(peer, call, &err)) {
			log_failure(
				LOG_LEVEL_WARNING, &err, "editor: $/cancel_request: %s", err.text);
		}
		return;
	}
	log_debug("editor: $/cancel_request for a request that was answered or never made");
}

static void pass_notification(
	struct peer *peer, const struct session *session, const struct call *call)
{
	struct error err;
	if (!relay_edit_session(
		    peer->relay, call, session, session ? session->agent_id : NULL, &err) ||
		!peer_forward(peer, call, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "editor: notification %s: %s",
			call->message.method, err.text);
	}
}

/* False if it must wait, because the agent reads too slowly. */
static bool on_notification(struct relay *relay, const struct call *call)
{
	const char *name = call->message.method;
	enum meaning means = call->method->means;
	if (means == MEANS_CANCEL_REQUEST) {
		on_cancel_request(relay, call);
		return true;
	}
	if (call->method->route == ROUTE_OWN) {
		log_debug("editor: notification %s is unknown", name);
		return true;
	}
	struct session *session = relay_session_of(relay, &call->message);
	struct peer *peer = session ? session->peer : NULL;
	bool is_cancel = means == MEANS_CANCEL_TURN;
	/* A session that is being restored may also have prompts behind its session/load. */
	bool was_behind = is_cancel && relay_order_cancel(relay, call);
	bool was_restored = is_cancel && session && restore_cancel(relay, session);
	if (was_restored || (was_behind && !session)) {
		return true;
	}
	if (!is_cancel && relay_order_holds(relay, call)) {
		return true;
	}
	if (!session && !relay->is_ending) {
		peer = relay_running_peer(relay); // a notification starts no agent
	}
	if (!peer) {
		log_warning("editor: notification %s was dropped: no agent runs", name);
		return true;
	}
	struct error err;
	if (!peer->is_ready) {
		if (!relay_wait_until_ready(peer, call, &err)) {
			log_failure(LOG_LEVEL_WARNING, &err, "editor: notification %s: %s", name,
				err.text);
		}
		return true;
	}
	if (relay_agent_takes_nothing(peer) && !is_cancel && call->came_from == STAGE_NONE) {
		return false;
	}
	if (is_of_no_session(peer, call)) {
		log_warning("editor: notification %s was dropped: its session is not open", name);
		return true;
	}
	bool was_waiting = is_cancel && session && relay_turn_cancel(peer, session);
	if (!was_waiting || session->prompts > 0) {
		pass_notification(peer, session, call);
	}
	if (is_cancel && session) {
		relay_mcp_exec_cancel(relay, session->id);
		grant_cancel_session(relay, session->id);
		grant_deletions_cancel(relay, session->id);
		grant_hosts_cancel(relay, session->id);
		grant_login_cancel(relay, session->id);
		mode_guard_cancel(relay, session);
		relay_watch_cancelled(relay, session);
	}
	return true;
}

/* ---- answers to an agent's requests ---- */

/* False if it must wait, because the agent reads too slowly. */
static bool on_response(struct relay *relay, const struct call *call)
{
	struct pending *pending = pending_find(&relay->asked_editor, call->message.id);
	if (!pending) {
		log_warning("editor: an answer to a request that was answered or never made");
		return true;
	}
	struct request *request = CONTAINER_OF(pending, struct request, pending);
	if (!request->on_answer && relay_agent_takes_nothing(request->peer)) {
		return false;
	}
	pending_remove(&relay->asked_editor, pending);
	request->peer->heard_at = ev_now(relay->config.loop); // its silence counts from now on
	struct error err;
	if (request->on_answer) {
		request->on_answer(relay, request, call, NULL);
	} else {
		grant_note_answered(relay, request, call);
		if (!relay_edit_id(call, pending_origin(pending), &err) ||
			!rewrite_paths(&request->peer->map, PATH_TO_RUNTIME, &call->message, "",
				call->edits, &err) ||
			!peer_forward(request->peer, call, &err)) {
			peer_fail(request->peer, pending_origin(pending), error_at(&err, "relay"));
		}
	}
	request_destroy(request);
	return true;
}

/* ---- lines that are not messages ---- */

/* Tells the agent, which waits for it, that the editor's answer cannot be used. */
static bool fail_agents_request(struct relay *relay, struct span id, const struct error *failure)
{
	struct pending *pending = pending_find(&relay->asked_editor, id);
	if (!pending) {
		return false;
	}
	struct request *request = CONTAINER_OF(pending, struct request, pending);
	pending_remove(&relay->asked_editor, pending);
	if (request->on_answer) {
		request->on_answer(relay, request, NULL, failure);
	} else {
		peer_fail(request->peer, pending_origin(pending), failure);
	}
	request_destroy(request);
	return true;
}

static void on_broken_line(
	struct relay *relay, const struct frame *frame, const char *code, const struct error *err)
{
	struct error failure;
	struct span id = message_broken_id(frame);
	failure_set(&failure, code, "relay", "message not understood: %s", err->text);
	log_failure(LOG_LEVEL_WARNING, &failure, "editor: %s", failure.text);
	if (!message_broken_has_method(frame) && id.len > 0 &&
		fail_agents_request(relay, id, &failure)) {
		return;
	}
	bool is_notification = frame->kind == FRAME_TOO_LONG && id.len == 0;
	if (is_notification || message_broken_is_response(frame)) {
		return; // it has no id to answer
	}
	relay_fail(relay, id, &failure);
}

void relay_on_parked_call(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	if (call->message.kind == MESSAGE_REQUEST) {
		if (!relay_order_holds(relay, call)) {
			dispatch_request(peer, call);
		}
		return;
	}
	bool is_taken = on_notification(relay, call);
	assert(is_taken); // a new agent has an empty queue
	(void)is_taken;
}

bool relay_on_editor_call(struct relay *relay, const struct call *call)
{
	switch (call->message.kind) {
	case MESSAGE_REQUEST:
		on_request(relay, call);
		return true;
	case MESSAGE_NOTIFICATION:
		return on_notification(relay, call);
	case MESSAGE_RESPONSE:
		break;
	}
	return on_response(relay, call);
}

/* False if the frame must wait. */
static bool on_frame(struct relay *relay, const struct frame *frame)
{
	struct error err;
	struct call call = {.from = relay->editor.frames, .frame = frame, .edits = &relay->edits};
	size_t most = relay->config.profile->max_queue + RELAY_EDITOR_RESERVE;
	if (link_queued(&relay->editor) > most) {
		return false;
	}
	if (frame->kind != FRAME_MESSAGE) {
		trace_noise(relay->config.trace, "editor", frame->bytes, frame->length);
		on_broken_line(relay, frame,
			frame->kind == FRAME_TOO_LONG ? "MESSAGE_TOO_LONG" : "PARSE_ERROR",
			&frame->error);
		return true;
	}
	bool was_refused = relay->was_refused;
	if (!was_refused) {
		trace_message(relay->config.trace, "editor", true, frame->bytes);
	}
	relay->was_refused = false;
	if (!message_read(&call.message, frame, &err)) {
		on_broken_line(relay, frame, "INVALID_MESSAGE", &err);
		return true;
	}
	if (call.message.kind != MESSAGE_RESPONSE) {
		call.method = relay_method_of(&call.message);
	}
	if (!was_refused) {
		usage_note_editor(relay, &call);
	}
	splice_clear(&relay->edits);
	relay->was_refused = !relay_on_editor_call(relay, &call);
	return !relay->was_refused;
}

bool relay_on_editor_frame(void *data, const struct frame *frame)
{
	relay_watch_memory(data, frame->length);
	bool is_taken = on_frame(data, frame);
	if (!is_taken) {
		relay_watch_editor(data);
	}
	return is_taken;
}
