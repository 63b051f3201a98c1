/* SPDX-License-Identifier: MIT */
#include "broker/session/hop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_MAX = 1024 * 1024 }; // bytes of one of the broker's own requests

/* ---- requests ---- */

struct request *request_create(struct peer *peer, const struct method *method)
{
	struct request *request = mem_alloc_zero(sizeof(*request));
	request->peer = peer;
	request->method = method;
	buf_init(&request->message, MESSAGE_MAX);
	return request;
}

void request_destroy(struct request *request)
{
	ev_timer_stop(request->peer->relay->config.loop, &request->due);
	parts_finish(&request->parts, request);
	pending_finish(&request->pending);
	buf_finish(&request->message);
	free(request->session_id);
	free(request);
}

bool request_is_prompt(const struct request *request)
{
	return request->method && request->method->means == MEANS_PROMPT;
}

/* ---- sending ---- */

void relay_send_editor(struct relay *relay, struct span message)
{
	trace_message(relay->config.trace, "editor", false, message);
	link_send(&relay->editor, message);
}

void peer_send(struct peer *peer, struct span message)
{
	trace_message(peer->relay->config.trace, peer->hop, false, message);
	link_send(agent_link(peer->agent), message);
}

void peer_send_taken(struct peer *peer, struct buf *message)
{
	trace_message(peer->relay->config.trace, peer->hop, false, buf_span(message));
	link_send_taken(agent_link(peer->agent), message);
}

void peer_send_ahead(struct peer *peer, struct span message)
{
	trace_message(peer->relay->config.trace, peer->hop, false, message);
	link_send_ahead(agent_link(peer->agent), message);
}

/* Traces a message as it will leave, with its edits. */
static void trace_spliced(struct relay *relay, const char *hop, const struct call *call)
{
	struct buf message;
	if (!relay->config.trace) {
		return;
	}
	buf_init(&message, SIZE_MAX / 2);
	if (splice_append(call->edits, call->frame->bytes, &message, NULL)) {
		trace_message(relay->config.trace, hop, false, buf_span(&message));
	}
	buf_finish(&message);
}

static bool forward(struct relay *relay, struct link *to, const char *hop, const struct call *call,
	struct error *err)
{
	if (!splice_seal(call->edits, call->frame->bytes.len, err)) {
		return false;
	}
	trace_spliced(relay, hop, call);
	return link_forward(
		to, call->from, call->frame, call->edits->count > 0 ? call->edits : NULL, err);
}

bool relay_forward_editor(struct relay *relay, const struct call *call, struct error *err)
{
	return forward(relay, &relay->editor, "editor", call, err);
}

bool peer_forward(struct peer *peer, const struct call *call, struct error *err)
{
	return forward(peer->relay, agent_link(peer->agent), peer->hop, call, err);
}

bool relay_agent_is_flooded(const struct peer *peer)
{
	size_t most = peer->relay->config.profile->max_queue + RELAY_AGENT_RESERVE;
	return link_queued(agent_link(peer->agent)) > most;
}

bool relay_agent_takes_nothing(const struct peer *peer)
{
	size_t most = peer->relay->config.profile->max_queue + RELAY_UNREAD_MAX;
	return link_queued(agent_link(peer->agent)) > most;
}

/* ---- edits ---- */

bool relay_edit_id(const struct call *call, struct span id, struct error *err)
{
	const struct json_hit *hit = message_hit(&call->message, PLACE_ID);
	return splice_add(call->edits, hit->start, hit->end, id, err);
}

bool relay_edit_minted(
	const struct call *call, const struct json_hit *hit, uint64_t id, struct error *err)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, id);
	return splice_add(
		call->edits, hit->start, hit->end, (struct span){digits, (size_t)len}, err);
}

bool relay_edit_session(struct relay *relay, const struct call *call, const struct session *session,
	const char *id, struct error *err)
{
	struct json_writer writer;
	if (!session || !session_has_alias(session)) {
		return true;
	}
	const struct json_hit *hit = message_hit(&call->message, PLACE_SESSION_ID);
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_text(&writer, id);
	return json_write_end(&writer, err) &&
	       splice_add(call->edits, hit->start, hit->end, buf_span(&relay->scratch), err);
}

bool relay_insert_member(struct relay *relay, const struct call *call, struct span object,
	const char *name, struct span value, struct error *err)
{
	return splice_insert_member(call->edits, call->message.text, object, name, value, err);
}

/* ---- who and what a message is about ---- */

struct reservation {
	char *directory; // owned
};

static void finish_reservation(void *part, void *peer)
{
	free(((struct reservation *)part)->directory);
}

static const struct part_type reservation_type = {
	.size = sizeof(struct reservation), .finish = finish_reservation};

const char *peer_reserved_for(const struct peer *peer)
{
	const struct reservation *reservation = parts_find(&peer->parts, &reservation_type);
	return reservation ? reservation->directory : NULL;
}

void peer_reserve(struct peer *peer, const char *directory)
{
	parts_remove(&peer->parts, &reservation_type, peer);
	if (directory) {
		struct reservation *reservation = parts_get(&peer->parts, &reservation_type);
		reservation->directory = mem_strdup(directory);
	}
}

bool relay_is_per_session(const struct relay *relay)
{
	const struct relay_config *config = &relay->config;
	return config->provider &&
	       provider_is_per_session(config->provider, &config->profile->settings);
}

struct peer *relay_running_peer(struct relay *relay)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		if (!peer->is_down && !peer_reserved_for(peer)) {
			return peer;
		}
	}
	return NULL;
}

struct peer *relay_peer_of_number(struct relay *relay, int number)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		if (peer->number == number) {
			return peer;
		}
	}
	return NULL;
}

struct peer *relay_peer_with_root(struct relay *relay, const struct call *call)
{
	char cwd[FILE_PATH_MAX];
	if (relay_is_per_session(relay) ||
		!message_string(&call->message, PLACE_CWD, cwd, sizeof(cwd))) {
		return NULL;
	}
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		if (!peer->is_down && path_map_has_local(&peer->map, cwd)) {
			return peer;
		}
	}
	return NULL;
}

struct session *relay_session_of(struct relay *relay, const struct message *message)
{
	char id[MESSAGE_SESSION_ID_MAX + 1];
	if (!message_string(message, PLACE_SESSION_ID, id, sizeof(id))) {
		return NULL;
	}
	return session_find(&relay->sessions, id);
}

struct session *relay_session_of_agent(struct peer *peer, const struct message *message)
{
	char id[MESSAGE_SESSION_ID_MAX + 1];
	if (!message_string(message, PLACE_SESSION_ID, id, sizeof(id))) {
		return NULL;
	}
	return session_find_agent(&peer->relay->sessions, peer, id);
}
