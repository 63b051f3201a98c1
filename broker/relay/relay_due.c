/* SPDX-License-Identifier: MIT */
#include "broker/relay/handshake.h"
#include "broker/relay/relay_due.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/log.h"
#include "broker/relay/relay_watch.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"
#include "broker/session/unanswered.h"

enum { GIVEN_UP_MAX = 16 };

/* A part of a peer: requests for a new session that the broker has answered itself. */
struct given_up {
	uint64_t ids[GIVEN_UP_MAX];
	unsigned count; // in all; old ones are dropped to make room
};

static const struct part_type type = {.size = sizeof(struct given_up)};

void relay_due_forget(struct peer *peer)
{
	parts_remove(&peer->parts, &type, peer);
}

/* ---- an agent that is silent ---- */

struct deadline {
	const char *stage;
	const char *key;
	size_t at; // offset of the milliseconds in struct profile
};

const struct deadline relay_due_session = {
	"session", "session-timeout", offsetof(struct profile, session_timeout_ms)};
const struct deadline relay_due_authenticate = {
	"authenticate", "authenticate-timeout", offsetof(struct profile, authenticate_timeout_ms)};

static int allowed_ms(const struct request *request)
{
	const char *profile = (const char *)request->peer->relay->config.profile;
	return *(const int *)(const void *)(profile + request->method->deadline->at);
}

static void give_up(struct request *request)
{
	struct error err;
	struct peer *peer = request->peer;
	const struct deadline *deadline = request->method->deadline;
	failure_set(&err, "TIMEOUT_EXCEEDED", deadline->stage,
		"%s has not answered %s, and said nothing for %d ms (%s)", peer->hop,
		request->method->name, allowed_ms(request), deadline->key);
	log_failure(LOG_LEVEL_WARNING, &err, "%s", err.text);
	if (request->method->makes_session) {
		struct given_up *given_up = parts_get(&peer->parts, &type);
		given_up->ids[given_up->count++ % GIVEN_UP_MAX] = request->pending.id;
	}
	pending_remove(&peer->asked, &request->pending);
	err.detail = agent_last_words(peer->agent);
	relay_fail_request(peer->relay, request, &err);
}

static void on_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct request *request = CONTAINER_OF(timer, struct request, due);
	struct peer *peer = request->peer;
	if (relay_watch_excuses(peer)) {
		peer->heard_at = ev_now(loop);
	}
	double left = allowed_ms(request) / 1000.0 - (ev_now(loop) - peer->heard_at);
	if (left <= 0) {
		give_up(request);
		return;
	}
	ev_timer_set(timer, left, 0.0);
	ev_timer_start(loop, timer);
}

void relay_due_watch(struct request *request)
{
	int ms = request->method && request->method->deadline ? allowed_ms(request) : 0;
	if (ms > 0) {
		ev_timer_init(&request->due, on_due, ms / 1000.0, 0.0);
		ev_timer_start(request->peer->relay->config.loop, &request->due);
	}
}

/* ---- late answers ---- */

/* Removes the id from the list; false if it is not there. */
static bool was_given_up(struct peer *peer, struct span raw_id)
{
	struct given_up *given_up = parts_find(&peer->parts, &type);
	for (unsigned i = 0; given_up && i < given_up->count && i < GIVEN_UP_MAX; i++) {
		char digits[24];
		snprintf(digits, sizeof(digits), "%" PRIu64, given_up->ids[i]);
		if (span_is(raw_id, digits)) {
			given_up->ids[i] = UINT64_MAX;
			return true;
		}
	}
	return false;
}

static void on_closed(struct relay *relay, struct request *request, const struct call *answer,
	const struct error *failure)
{
	if (failure || answer->message.is_error) {
		log_warning("%s: the session that came too late could not be closed and stays open "
			    "there",
			request->peer->hop);
	}
}

static bool write_close(struct buf *out, uint64_t id, struct span session_id, struct error *err)
{
	return buf_append_format(out, err,
		"{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64
		",\"method\":\"session/close\",\"params\":{\"sessionId\":%.*s}}",
		id, (int)session_id.len, session_id.data);
}

static void close_session(struct peer *peer, struct span session_id)
{
	struct relay *relay = peer->relay;
	struct error err;
	struct request *request = request_create(peer, NULL);
	request->on_answer = on_closed;
	if (!pending_add(&peer->asked, &request->pending, (struct span){NULL, 0}, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "%s: session/close: %s", peer->hop, err.text);
		request_destroy(request);
		return;
	}
	buf_clear(&relay->scratch);
	if (!write_close(&relay->scratch, request->pending.id, session_id, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "%s: session/close: %s", peer->hop, err.text);
		pending_remove(&peer->asked, &request->pending);
		request_destroy(request);
		return;
	}
	peer_send(peer, buf_span(&relay->scratch));
	relay_watch_own(request, relay->config.profile->session_timeout_ms,
		"the agent does not answer session/close");
}

void relay_due_take_late(struct peer *peer, const struct call *call)
{
	struct span session_id = message_place(&call->message, PLACE_RESULT_SESSION_ID);
	bool makes_session = was_given_up(peer, call->message.id) && session_id.len > 0;
	if (!makes_session) {
		log_warning(
			"%s: an answer to a request that was answered or never made", peer->hop);
		return;
	}
	bool is_closed = handshake_offers(peer->relay)->close && !peer->is_down;
	log_warning("%s: a session came too late (session-timeout): it %s", peer->hop,
		is_closed ? "is closed"
			  : "stays open there, because the agent offers no session/close");
	if (is_closed) {
		close_session(peer, session_id);
	}
}
