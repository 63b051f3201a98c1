/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_toolhost.h"
#include "broker/gate/grant_login.h"
#include "broker/gate/grant_writes.h"
#include "broker/relay/opens.h"

#include <stdio.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "broker/relay/relay_watch.h"
#include "broker/session/answer.h"
#include "broker/session/in_flight.h"
#include "broker/session/serving.h"

/* ---- initialize ---- */

/* The terminals that the broker serves: a part of the relay. */
struct shown {
	bool has_output; // the editor has _meta.terminal_output
	unsigned last;   // number of the last terminal of all agents, including ended ones
};

static const struct part_type type = {.size = sizeof(struct shown)};

static bool shows_terminals(const struct call *call)
{
	struct span raw = message_place(&call->message, PLACE_CLIENT_CAPABILITIES);
	if (raw.len == 0) {
		return false;
	}
	struct json_doc *doc = json_doc_parse_unchecked(raw, NULL);
	bool shows = doc && json_bool(doc, json_path(doc, 0, "_meta.terminal_output"), false);
	json_doc_destroy(doc);
	return shows;
}

#define FILE_CAPABILITIES "{\"readTextFile\":true,\"writeTextFile\":true}"

/* Adds members to clientCapabilities, which may have either of them already. */
static bool add_members(struct relay *relay, const struct call *call, struct error *err)
{
	struct span object = message_place(&call->message, PLACE_CLIENT_CAPABILITIES);
	const struct json_hit *fs = message_hit(&call->message, PLACE_CLIENT_FS);
	const struct json_hit *terminal = message_hit(&call->message, PLACE_CLIENT_TERMINAL);
	struct span files = SPAN_LITERAL(FILE_CAPABILITIES);
	struct span yes = SPAN_LITERAL("true");
	if (!fs && !terminal) { // one insertion, because an empty object needs no comma
		return relay_insert_member(relay, call, object, "fs",
			SPAN_LITERAL(FILE_CAPABILITIES ",\"terminal\":true"), err);
	}
	bool ok = fs ? splice_add(call->edits, fs->start, fs->end, files, err)
	             : relay_insert_member(relay, call, object, "fs", files, err);
	return ok && (terminal ? splice_add(call->edits, terminal->start, terminal->end, yes, err)
			       : relay_insert_member(relay, call, object, "terminal", yes, err));
}

static bool add_capabilities(struct relay *relay, const struct call *call, struct error *err)
{
	const struct json_hit *hit = message_hit(&call->message, PLACE_CLIENT_CAPABILITIES);
	struct span value = message_place(&call->message, PLACE_CLIENT_CAPABILITIES);
	struct span all = SPAN_LITERAL("{\"fs\":" FILE_CAPABILITIES ",\"terminal\":true}");
	if (!hit) {
		struct span params = message_place(&call->message, PLACE_PARAMS);
		return params.len == 0 || params.data[0] != '{' ||
		       relay_insert_member(relay, call, params, "clientCapabilities", all, err);
	}
	if (value.data[0] != '{') {
		return splice_add(call->edits, hit->start, hit->end, all, err);
	}
	return add_members(relay, call, err);
}

/* Tells the agent that it has no terminals, so that it runs its commands itself. */
static bool take_terminals_away(struct relay *relay, const struct call *call, struct error *err)
{
	const struct json_hit *hit = message_hit(&call->message, PLACE_CLIENT_TERMINAL);
	return !hit || splice_add(call->edits, hit->start, hit->end, SPAN_LITERAL("false"), err);
}

bool relay_toolhost_greet(struct peer *peer, const struct call *call, struct error *err)
{
	struct shown *shown = parts_get(&peer->relay->parts, &type);
	shown->has_output = shows_terminals(call);
	if (relay_uses_toolhost(peer)) {
		return add_capabilities(peer->relay, call, err);
	}
	return !relay_refuses_terminals(peer) || take_terminals_away(peer->relay, call, err);
}

/* ---- serving ---- */

/* The agent's silence counts again from now on. */
static struct peer *answered(void *data)
{
	struct peer *peer = data;
	peer->heard_at = ev_now(peer->relay->config.loop);
	return peer;
}

static void on_result(void *data, struct span id, struct buf *result)
{
	static const char of_terminal[] = "{\"output\":";
	struct peer *peer = answered(data);
	if (span_starts_with(buf_span(result), SPAN_LITERAL(of_terminal))) {
		grant_writes_look(peer, NULL, buf_span(result));
	}
	relay_watch_memory(peer->relay, result->len);
	peer_answer_taken(peer, id, result);
}

static void on_failure(void *data, struct span id, const struct error *failure)
{
	peer_fail(answered(data), id, failure);
}

/* A part of a peer: what the ToolHost shows now precedes an answer. */
static const struct part_type last_type = {.size = sizeof(bool)};

static bool is_showing_last(const struct peer *peer)
{
	const bool *is_showing = parts_find(&peer->parts, &last_type);
	return is_showing && *is_showing;
}

static void show_last(struct peer *peer, bool is_showing)
{
	*(bool *)parts_get(&peer->parts, &last_type) = is_showing;
}

static bool on_update(void *data, struct span message)
{
	struct peer *peer = data;
	if (link_is_over(&peer->relay->editor) && !is_showing_last(peer)) {
		return false;
	}
	relay_send_editor(peer->relay, message);
	return true;
}

static bool is_full(void *data)
{
	const struct peer *peer = data;
	return link_is_over(agent_link(peer->agent));
}

static void on_terminals(void *data)
{
	in_flight_note(data, NULL); // during a rollback a new one is not stopped
}

static void on_login(void *data, const char *session_id, const struct login_url *login)
{
	struct peer *peer = data;
	grant_login_offer(
		peer, session_find_agent(&peer->relay->sessions, peer, session_id), login);
}

static const struct toolhost_listener listener = {
	.on_result = on_result,
	.on_failure = on_failure,
	.on_update = on_update,
	.is_full = is_full,
	.on_terminals = on_terminals,
	.on_login = on_login,
};

static struct toolhost *toolhost_of(struct peer *peer)
{
	if (peer->toolhost) {
		return peer->toolhost;
	}
	struct shown *shown = parts_get(&peer->relay->parts, &type);
	struct toolhost_config config = {
		.loop = peer->relay->config.loop,
		.sandbox = agent_sandbox(peer->agent),
		.limits = peer->relay->config.profile->toolhost_limits,
		.watches_logins = grant_login_is_watched(peer),
		.editor_shows_terminals = shown->has_output,
		.agent_name = peer->agent_name,
		.map = &peer->map,
		.last_terminal = &shown->last,
		.listener = &listener,
		.data = peer,
	};
	peer->toolhost = toolhost_create(&config);
	return peer->toolhost;
}

/*
 * The roots of a session that is being loaded. It is not in the table yet, and has the agent's id.
 */
static char **roots_being_opened(const struct peer *peer, const char *agent_id)
{
	LIST_FOR_EACH(pending, &peer->asked.order, struct pending, order_link) {
		const struct request *request = CONTAINER_OF(pending, struct request, pending);
		const struct session *session =
			request->session_id
				? session_find(&peer->relay->sessions, request->session_id)
				: NULL;
		const char *id = session ? session->agent_id : request->session_id;
		bool is_it = id && strcmp(id, agent_id) == 0 && (!session || !session->peer);
		const struct opens *opens = opens_find(request);
		char **roots = opens ? opens->roots : NULL;
		if (is_it && (roots || session)) {
			return roots ? roots : session->roots;
		}
	}
	return NULL;
}

void relay_toolhost_call(struct peer *peer, const struct call *call)
{
	char id[MESSAGE_SESSION_ID_MAX + 1] = "";
	(void)message_string(&call->message, PLACE_SESSION_ID, id, sizeof(id));
	const struct session *session = relay_session_of_agent(peer, &call->message);
	char **roots = session ? session->roots : roots_being_opened(peer, id);
	if (!roots) {
		struct error err;
		peer_fail(peer, call->message.id,
			failure_set(&err, "INVALID_PARAMS", "session",
				"params.sessionId names no session of this agent"));
		return;
	}
	toolhost_call(toolhost_of(peer), &call->message, id, (const char *const *)roots,
		call->resolved ? call->resolved[0] : NULL);
}

bool relay_toolhost_edit(struct peer *peer, const struct call *call, struct error *err)
{
	if (!peer->toolhost) {
		return true;
	}
	return toolhost_edit_update(peer->toolhost, &call->message, call->edits, err);
}

void relay_toolhost_flush_session(struct peer *peer, const struct session *session)
{
	if (peer->toolhost) {
		show_last(peer, true);
		toolhost_flush_session(peer->toolhost, session->agent_id);
		show_last(peer, false);
	}
}

void relay_toolhost_end_session(struct peer *peer, const char *agent_id)
{
	if (peer->toolhost) {
		show_last(peer, true);
		toolhost_end_session(peer->toolhost, agent_id);
		show_last(peer, false);
	}
}

void relay_toolhost_end(struct peer *peer)
{
	if (peer->toolhost) {
		show_last(peer, true);
		toolhost_show_last(peer->toolhost);
		toolhost_destroy(peer->toolhost);
		peer->toolhost = NULL;
		show_last(peer, false);
	}
}
