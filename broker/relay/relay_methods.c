/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_methods.h"

#include <stdlib.h>
#include <string.h>

#include "broker/gate/grant_ask.h"
#include "broker/gate/grant_deletions.h"
#include "broker/gate/grant_held.h"
#include "broker/gate/grant_hosts.h"
#include "broker/gate/grant_login.h"
#include "broker/policy/memory.h"
#include "broker/relay/choice_gate.h"
#include "broker/relay/handshake.h"
#include "broker/relay/listing.h"
#include "broker/relay/mode_guard.h"
#include "broker/relay/opens.h"
#include "broker/relay/own_copy.h"
#include "broker/relay/prompt_note.h"
#include "broker/relay/relay_claim.h"
#include "broker/relay/relay_end.h"
#include "broker/relay/relay_due.h"
#include "broker/relay/relay_events.h"
#include "broker/relay/relay_mcp.h"
#include "broker/relay/relay_mcp_exec.h"
#include "broker/relay/relay_sync.h"
#include "broker/relay/relay_toolhost.h"
#include "broker/relay/relay_turn.h"
#include "broker/relay/relay_watch.h"
#include "broker/relay/restore.h"
#include "broker/session/in_flight.h"
#include "broker/session/root_names.h"

static bool remember_session(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	char id[MESSAGE_SESSION_ID_MAX + 1];
	if (message_string(&call->message, PLACE_SESSION_ID, id, sizeof(id))) {
		request->session_id = mem_strdup(id);
	}
	return true;
}

enum { ROOTS_MAX = 64 }; // directories of one session

char **relay_directories_of(const struct message *message)
{
	size_t count = 0;
	const struct json_check *check = message->check;
	char **roots = mem_alloc_zero((ROOTS_MAX + 1) * sizeof(*roots));
	for (int pass = 0; pass < 2; pass++) {
		uint32_t place = pass == 0 ? PLACE_CWD : PLACE_ADDITIONAL_DIRECTORY;
		for (size_t i = 0; i < json_check_hit_count(check) && count < ROOTS_MAX; i++) {
			const struct json_hit *hit = &json_check_hits(check)[i];
			char path[FILE_PATH_MAX];
			if (hit->place == place &&
				message_hit_string(message, hit, path, sizeof(path))) {
				roots[count++] = mem_strdup(path);
			}
		}
	}
	return roots;
}

static bool too_many_roots(const struct message *message)
{
	size_t count = 0;
	for (size_t i = 0; i < json_check_hit_count(message->check); i++) {
		count += json_check_hits(message->check)[i].place == PLACE_ADDITIONAL_DIRECTORY;
	}
	return count >= ROOTS_MAX;
}

/* Remembers the agent's own names of the session's directories. */
static bool remember_roots(struct request *request, const struct call *call, struct error *err)
{
	if (too_many_roots(&call->message)) {
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"more than %d directories in one session", ROOTS_MAX);
	}
	char **roots = relay_directories_of(&call->message);
	opens_of(request)->roots = roots;
	restore_keep(request, call);
	for (size_t i = 0; roots[i]; i++) {
		char *mapped = relay_map_path(request->peer, PATH_TO_RUNTIME, roots[i]);
		free(roots[i]);
		roots[i] = mapped;
	}
	return true;
}

static void give_roots(struct session *session, struct request *request)
{
	const struct sandbox *sandbox = agent_sandbox(request->peer->agent);
	struct opens *opens = opens_of(request);
	session_set_roots(session, opens->roots);
	session_set_sandbox(session, sandbox ? sandbox_reference(sandbox) : NULL,
		sandbox ? sandbox_instance(sandbox) : NULL);
	own_copy_note(request->peer);
	session->agent_number = request->peer->number;
	restore_remember(session, request);
	opens->roots = NULL;
	opens->has_opened = true;
}

/*
 * A session/new would open one session too many: refuses it before the agent creates the session.
 */
static bool check_room(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	if (!session_table_has_room(&relay->sessions)) {
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"%d sessions are already open (max-sessions)", relay->sessions.max);
	}
	return remember_roots(request, call, err);
}

static bool load_begins(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	return remember_session(relay, request, call, err) && remember_roots(request, call, err);
}

/* If another agent has minted the same id, the editor gets another one. */
static bool edit_new_id(struct relay *relay, const struct call *call, const struct session *session,
	struct error *err)
{
	struct json_writer writer;
	if (!session_has_alias(session)) {
		return true;
	}
	const struct json_hit *hit = message_hit(&call->message, PLACE_RESULT_SESSION_ID);
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_text(&writer, session->id);
	return json_write_end(&writer, err) &&
	       splice_add(call->edits, hit->start, hit->end, buf_span(&relay->scratch), err);
}

static bool bind_new(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	char id[MESSAGE_SESSION_ID_MAX + 1];
	if (!message_string(&call->message, PLACE_RESULT_SESSION_ID, id, sizeof(id))) {
		return true; // without an id; it goes to the current agent, which judges it
	}
	struct session *session =
		session_bind_new(&relay->sessions, id, request->peer, request->peer->number, err);
	if (!session) {
		return false;
	}
	give_roots(session, request);
	mem_set_text(&request->session_id, session->id);
	mode_guard_read(relay, session, request, call);
	relay_mcp_exec_read(request, call);
	relay_sync_add_session(request->peer, session);
	relay_note_start(relay, NULL);
	return edit_new_id(relay, call, session, err);
}

static bool bind_loaded(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	if (!request->session_id) {
		return true;
	}
	struct session *session =
		session_bind(&relay->sessions, request->session_id, request->peer, err);
	if (session) {
		give_roots(session, request);
		session->hides_replay = false; // the editor has asked for the replay
		relay_claim_choices(relay, request, session);
		mode_guard_read(relay, session, request, call);
		relay_mcp_exec_read(request, call);
		relay_sync_add_session(request->peer, session);
		relay_note_start(relay, NULL);
	}
	return session != NULL;
}

/* The session was not opened: ends what the agent has begun for it meanwhile. */
static void end_what_was_begun(struct relay *relay, const struct request *request)
{
	const struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (request->session_id && (!session || !session->peer)) {
		relay_toolhost_end_session(
			request->peer, session ? session->agent_id : request->session_id);
	}
}

static void session_is_answered(struct relay *relay, struct request *request)
{
	const struct opens *opens = opens_find(request);
	if (!opens || !opens->has_opened) {
		end_what_was_begun(relay, request);
	}
	mode_guard_opened(relay, request);
	relay_mcp_exec_opened(relay, request);
	relay_mcp_tell(relay, request);
	relay_sync_tell(relay, request);
	const struct session *session = opens_session(relay, request);
	if (session && session->peer) {
		relay_claim_opened(relay, request, session);
	}
}

/* First answers the agent's own requests for this session. */
static bool close_begins(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	if (!remember_session(relay, request, call, err)) {
		return false;
	}
	if (request->session_id) {
		relay_mcp_exec_cancel(relay, request->session_id);
		grant_cancel_session(relay, request->session_id);
		grant_deletions_cancel(relay, request->session_id);
		grant_held_withdraw(relay, request->session_id);
		grant_hosts_cancel(relay, request->session_id);
		grant_login_cancel(relay, request->session_id);
		struct session *session = session_find(&relay->sessions, request->session_id);
		if (session && session->peer) {
			relay_turn_cancel(session->peer, session);
		}
		if (session) {
			mode_guard_cancel(relay, session);
		}
	}
	return true;
}

static bool forget(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (session) {
		if (session->peer) {
			relay_toolhost_end_session(session->peer, session->agent_id);
		}
		mode_guard_cancel(relay, session); // a prompt that came after the request
		session_forget(&relay->sessions, session);
	}
	return true;
}

static bool forget_deleted(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (session) {
		session->is_deleted = true;
	}
	return forget(relay, request, call, err);
}

static bool prompt_begins(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	struct session *session = relay_session_of(relay, &call->message);
	if (session && !mode_guard_admits(session, err)) {
		return false;
	}
	remember_session(relay, request, call, err);
	if (session && session->prompts == 0) {
		memory_end_turn(session->memory); // of the turn before
	}
	if (session) {
		session->hides_replay = false;
		session->prompts++; // until it is answered, even if it is refused here
	}
	if (session && !prompt_note_add(request->peer, session, call, err)) {
		return false;
	}
	if (!in_flight_note(request->peer, err)) {
		return false;
	}
	usage_note_prompt(relay, session);
	relay_watch_prompt(request->peer);
	return true;
}

/* The last output of its terminals is sent before the answer. */
static void prompt_is_answered(struct relay *relay, struct request *request)
{
	const struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (session) {
		relay_toolhost_flush_session(request->peer, session);
	}
}

static void prompt_is_over(struct relay *relay, struct request *request)
{
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	bool is_its_own =
		session && session->peer == request->peer; // not loaded by another agent meanwhile
	if (is_its_own && session->prompts > 0) {
		session->prompts--;
	}
	in_flight_note(request->peer, NULL);
}

static const struct method methods[] = {
	{.name = "initialize",
		.means = MEANS_GREETING,
		.on_send = handshake_on_send,
		.on_result = handshake_on_result,
		.on_over = handshake_on_over},
	{.name = "authenticate",
		.deadline = &relay_due_authenticate,
		.on_send = handshake_keep_authenticate,
		.on_result = handshake_on_authenticated},
	{.name = "logout", .on_result = handshake_on_logged_out},
	{.name = "session/new",
		.opens_session = true,
		.makes_session = true,
		.deadline = &relay_due_session,
		.on_send = check_room,
		.on_result = bind_new,
		.on_over = session_is_answered},
	{.name = "session/load",
		.means = MEANS_OPEN_AGAIN,
		.opens_session = true,
		.deadline = &relay_due_session,
		.on_send = load_begins,
		.on_result = bind_loaded,
		.on_error = relay_claim_on_error,
		.on_over = session_is_answered},
	{.name = "session/resume",
		.means = MEANS_OPEN_AGAIN,
		.opens_session = true,
		.deadline = &relay_due_session,
		.on_send = load_begins,
		.on_result = bind_loaded,
		.on_error = relay_claim_on_error,
		.on_over = session_is_answered},
	{.name = "session/fork",
		.route = ROUTE_SESSION,
		.opens_session = true,
		.makes_session = true,
		.deadline = &relay_due_session,
		.on_send = check_room,
		.on_result = bind_new,
		.on_over = session_is_answered},
	{.name = "session/list",
		.route = ROUTE_LIST,
		.on_send = listing_on_send,
		.on_result = listing_on_result,
		.on_error = listing_on_error},
	{.name = "session/delete",
		.means = MEANS_END_SESSION,
		.takes_unopened = true,
		.on_send = close_begins,
		.on_result = forget_deleted},
	{.name = "session/close",
		.means = MEANS_END_SESSION,
		.route = ROUTE_SESSION,
		.takes_unopened = true,
		.on_send = close_begins,
		.on_result = forget},
	{.name = "session/set_mode",
		.means = MEANS_SET_MODE,
		.route = ROUTE_SESSION,
		.on_send = choice_gate_on_send,
		.on_result = choice_gate_on_result},
	{.name = "session/set_model",
		.means = MEANS_SET_MODEL,
		.route = ROUTE_SESSION,
		.on_send = choice_gate_on_send,
		.on_result = choice_gate_on_result},
	{.name = "session/set_config_option",
		.means = MEANS_SET_OPTION,
		.route = ROUTE_SESSION,
		.on_send = choice_gate_on_send,
		.on_result = choice_gate_on_result},
	{.name = "session/prompt",
		.means = MEANS_PROMPT,
		.route = ROUTE_SESSION,
		.raise = relay_turn_begins,
		.raise_answered = relay_turn_ends,
		.on_send = prompt_begins,
		.before_answer = prompt_is_answered,
		.on_over = prompt_is_over},
	{.name = "session/cancel", .means = MEANS_CANCEL_TURN, .is_notification = true},
	{.name = "$/cancel_request", .means = MEANS_CANCEL_REQUEST, .is_notification = true},
};

/* An unknown method goes to its session's agent, or to the current one. */
static const struct method unknown_method = {.route = ROUTE_SESSION};
static const struct method own_method = {.route = ROUTE_OWN};

static bool is_own(const char *name)
{
	static const char prefix[] = "_broker/";
	return strncmp(name, prefix, sizeof(prefix) - 1) == 0;
}

const struct method *relay_method_of(const struct message *message)
{
	const char *name = message->method;
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		if (strcmp(methods[i].name, name) == 0) {
			bool is_misused =
				methods[i].is_notification && message->kind == MESSAGE_REQUEST;
			return is_misused ? &unknown_method : &methods[i];
		}
	}
	return is_own(name) ? &own_method : &unknown_method;
}
