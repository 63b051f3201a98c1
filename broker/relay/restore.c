/* SPDX-License-Identifier: MIT */
#include "broker/relay/handshake.h"
#include "broker/relay/restore.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "broker/relay/relay_revive.h"
#include "broker/relay/restore_internal.h"
#include "broker/session/answer.h"

/* ---- the parameters of a session ---- */

void restore_keep(struct request *request, const struct call *call)
{
	struct span params = message_place(&call->message, PLACE_PARAMS);
	buf_clear(&request->message);
	if (params.len <= RESTORE_OPENING_MAX && !buf_append(&request->message, params, NULL)) {
		buf_clear(
			&request->message); // then it cannot be restored, and the error will say so
	}
}

void restore_remember(struct session *session, struct request *request)
{
	struct span opening = buf_span(&request->message);
	free(session->opening);
	session->opening = opening.len > 0 ? mem_strndup(opening) : NULL;
}

static void init(void *part)
{
	list_init(&((struct restores *)part)->all);
}

static const struct part_type type = {.size = sizeof(struct restores), .init = init};

struct restores *restores_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

/* ---- waiting requests ---- */

static struct restore *find(struct relay *relay, const char *session_id)
{
	LIST_FOR_EACH(restore, &restores_of(relay)->all, struct restore, link) {
		if (strcmp(restore->session_id, session_id) == 0) {
			return restore;
		}
	}
	return NULL;
}

struct desk_pick restore_pick(const struct restore *restore)
{
	return (struct desk_pick){STAGE_RESTORE, NULL, restore->session_id};
}

void restore_destroy(struct restore *restore)
{
	ev_timer_stop(restore->relay->config.loop, &restore->quiet);
	list_remove(&restore->link);
	free(restore->session_id);
	free(restore->old_root);
	free(restore->old_instance);
	free(restore);
}

static void hold(struct restore *restore, const struct call *call)
{
	struct relay *relay = restore->relay;
	if (relay_admits_at(relay, call, restore_pick(restore))) {
		desk_hold(&relay->desk, NULL, STAGE_RESTORE, NULL, call);
	}
}

/* ---- starting ---- */

/* Writes session/resume or session/load as the editor would send it. */
static bool write_request(
	const struct restore *restore, const struct session *session, struct buf *out)
{
	struct json_writer writer;
	struct json_doc *doc = json_doc_parse_unchecked(span_of(session->opening), NULL);
	bool ok = doc &&
	          buf_append_format(out, NULL,
			  "{\"jsonrpc\":\"2.0\",\"id\":%s%u\",\"method\":\"session/%s\","
			  "\"params\":{\"sessionId\":",
			  RESTORE_ID_PREFIX, restore->number, restore->is_load ? "load" : "resume");
	json_write_begin(&writer, out);
	json_write_text(&writer, session->id);
	ok = ok && json_write_end(&writer, NULL);
	for (json_node node = ok ? json_first(doc, 0) : JSON_NODE_NONE; node != JSON_NODE_NONE;
		node = json_next(doc, node)) {
		struct span key = json_key(doc, node);
		ok = ok &&
		     (span_is(key, "sessionId") ||
			     (buf_append_format(out, NULL, ",\"%.*s\":", (int)key.len, key.data) &&
				     buf_append(out, json_raw(doc, node), NULL)));
	}
	json_doc_destroy(doc);
	return ok && buf_append(out, SPAN_LITERAL("}}"), NULL);
}

/*
 * Whether an agent may be restarted for it. A lost link does not count as the death of its agent.
 */
static bool may_restart(const struct relay *relay, const struct session *session)
{
	double passed = ev_now(relay->config.loop) - session->restarts_since;
	return session->was_link_lost || passed >= RESTORE_WINDOW_S ||
	       session->restarts < relay->config.profile->restart_limit;
}

static void count_restart(const struct relay *relay, struct session *session)
{
	double now = ev_now(relay->config.loop);
	if (session->was_link_lost) {
		return;
	}
	if (now - session->restarts_since >= RESTORE_WINDOW_S) {
		session->restarts_since = now;
		session->restarts = 0;
	}
	session->restarts++;
}

/* The agent that will restore it; NULL if there is none, and err says why. */
static struct peer *choose(
	struct relay *relay, struct session *session, const struct call *call, struct error *err)
{
	struct peer *home = relay_peer_of_number(relay, session->agent_number);
	struct peer *peer = home && !home->is_down ? home : relay_peer_with_root(relay, call);
	if (peer) {
		return peer;
	}
	if (!may_restart(relay, session)) {
		failure_set(err, "RESOURCE_LIMIT_EXCEEDED", "session",
			"the agent of session \"%s\" was restarted %d times within %d s "
			"and ended each time (restart-limit): find out why, or wait a "
			"minute",
			session->id, session->restarts, RESTORE_WINDOW_S);
		return NULL;
	}
	unsigned before = relay->agents_started;
	peer = home && relay_revive(home) ? home : relay->ops->current_peer(relay);
	if (relay->agents_started != before) {
		count_restart(relay, session);
	}
	failure_set(err, "RESOURCE_LIMIT_EXCEEDED", "session", "no further agent can be started");
	return peer;
}

static void send_request(struct restore *restore, struct session *session)
{
	struct relay *relay = restore->relay;
	struct buf bytes;
	struct call call;
	struct error err;
	buf_init(&bytes, SIZE_MAX / 2);
	if (!write_request(restore, session, &bytes)) {
		buf_finish(&bytes);
		restore_fail(restore,
			restore_describe_loss(session, "its parameters are unknown", &err));
		return;
	}
	struct parcel *parcel = parcel_of(&bytes, relay->places);
	call = (struct call){.came_from = STAGE_RESTORE};
	if (call_open(&call, parcel)) {
		call.method = relay->ops->method_of(&call.message);
		struct peer *peer = choose(relay, session, &call, &err);
		if (peer) {
			session->agent_number = peer->number;
			relay->ops->on_parked_call(peer, &call);
		} else {
			restore_fail(restore, &err);
		}
	}
	parcel_destroy(parcel);
	buf_finish(&bytes);
}

static struct restore *create(struct relay *relay, const struct session *session)
{
	struct restore *restore = mem_alloc_zero(sizeof(*restore));
	restore->relay = relay;
	restore->number = ++restores_of(relay)->begun;
	restore->session_id = mem_strdup(session->id);
	restore->old_root = mem_strdup_or_null(session->roots ? session->roots[0] : NULL);
	restore->old_instance = mem_strdup_or_null(session->instance);
	restore->is_load = !handshake_offers(relay)->resume;
	ev_init(&restore->quiet, restore_on_quiet);
	list_append(&restores_of(relay)->all, &restore->link);
	return restore;
}

static void refuse(struct relay *relay, const struct session *session, const struct call *call)
{
	struct error err;
	relay_fail(relay, call->message.id,
		restore_describe_loss(session,
			!session->opening ? "its parameters are too long to be kept"
					  : "it offers neither session/resume nor session/load",
			&err));
}

bool restore_holds(
	struct relay *relay, struct session *session, bool is_needed, const struct call *call)
{
	struct restore *restore = find(relay, session->id);
	if (restore) {
		hold(restore, call);
		return true;
	}
	if (session->peer || !is_needed) {
		return false;
	}
	if (call->method->means == MEANS_END_SESSION) {
		relay_answer(relay, call->message.id, SPAN_LITERAL("{}")); // nothing of it is open
		session_forget(&relay->sessions, session);
		return true;
	}
	const struct offers *offers = handshake_offers(relay);
	if (!session->opening || (!offers->load && !offers->resume)) {
		refuse(relay, session, call);
		return true;
	}
	restore = create(relay, session);
	hold(restore, call);
	send_request(restore, session);
	return true;
}

/* ---- requests that no longer need to wait ---- */

bool restore_cancel(struct relay *relay, const struct session *session)
{
	struct restore *restore = find(relay, session->id);
	if (restore) {
		desk_cancel_prompts(&relay->desk, restore_pick(restore));
	}
	return restore != NULL;
}

void restore_finish(struct relay *relay)
{
	LIST_FOR_EACH(restore, &restores_of(relay)->all, struct restore, link) {
		if (ev_is_active(&restore->quiet)) {
			restore_fail(restore, &relay_has_ended);
		}
	}
	assert(list_is_empty(&restores_of(relay)->all)); // their agents have failed the others
}
