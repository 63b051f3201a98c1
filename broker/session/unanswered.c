/* SPDX-License-Identifier: MIT */
#include "broker/session/unanswered.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "broker/session/answer.h"
#include "broker/session/question.h"

/* ---- permission-timeout: a user who does not answer ---- */

void relay_withdraw_question(struct relay *relay, const struct request *request)
{
	const struct question *question = question_find(request);
	if (question && question->is_hidden) {
		return;
	}
	buf_clear(&relay->scratch);
	if (buf_append_format(&relay->scratch, NULL,
		    "{\"jsonrpc\":\"2.0\",\"method\":\"$/"
		    "cancel_request\",\"params\":{\"requestId\":%llu}}",
		    (unsigned long long)request->pending.id)) {
		relay_send_editor(relay, buf_span(&relay->scratch));
	}
}

static void on_question_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct request *request = CONTAINER_OF(timer, struct request, due);
	struct peer *peer = request->peer;
	struct relay *relay = peer->relay;
	struct error failure;
	const struct profile *profile = relay->config.profile;
	if (request->is_cancelled) {
		failure_set(&failure, "TIMEOUT_EXCEEDED", "session",
			"nobody answered within %d ms after the turn was cancelled "
			"(cancel-timeout)",
			profile->cancel_timeout_ms);
	} else {
		failure_set(&failure, "TIMEOUT_EXCEEDED", "session",
			"nobody answered within %d ms (permission-timeout)",
			profile->permission_timeout_ms);
	}
	log_failure(LOG_LEVEL_WARNING, &failure, "%s: a question to the user: %s", peer->hop,
		failure.text);
	pending_remove(&relay->asked_editor, &request->pending);
	relay_withdraw_question(relay, request);
	peer->heard_at = ev_now(loop); // its silence counts from now on
	if (request->on_answer) {
		request->on_answer(relay, request, NULL, &failure);
	} else {
		relay->ops->on_unanswered(relay, request, &failure);
		peer_answer_when_gone(peer, pending_origin(&request->pending), request->method);
	}
	request_destroy(request);
}

void relay_watch_question(struct request *request)
{
	struct relay *relay = request->peer->relay;
	int ms = relay->config.profile->permission_timeout_ms;
	if (ms > 0) {
		ev_timer_init(&request->due, on_question_due, ms / 1000.0, 0.0);
		ev_timer_start(relay->config.loop, &request->due);
	}
}

static bool is_due_within(struct request *request, double seconds)
{
	return ev_is_active(&request->due) &&
	       ev_timer_remaining(request->peer->relay->config.loop, &request->due) <= seconds;
}

/* If a turn is cancelled, the broker's own questions are answered at once. */
void relay_watch_cancelled(struct relay *relay, const struct session *session)
{
	double seconds = relay->config.profile->cancel_timeout_ms / 1000.0;
	LIST_FOR_EACH(pending, &relay->asked_editor.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		bool is_its = request->session_id && strcmp(request->session_id, session->id) == 0;
		bool is_asked = request->method && request->method->result_when_gone;
		if (is_its && is_asked && !request->on_answer && !is_due_within(request, seconds)) {
			request->is_cancelled = true;
			ev_timer_stop(relay->config.loop, &request->due);
			ev_timer_init(&request->due, on_question_due, seconds, 0.0);
			ev_timer_start(relay->config.loop, &request->due);
		}
	}
}

/* ---- the broker's own requests without an answer ---- */

static void on_own_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct request *request = CONTAINER_OF(timer, struct request, due);
	const struct sandbox *sandbox = agent_sandbox(request->peer->agent);
	struct error failure;
	if (sandbox && sandbox_extend_timer(sandbox, timer, &request->away_ms)) {
		return;
	}
	failure_set(&failure, "TIMEOUT_EXCEEDED", "session", "%s", request->unanswered);
	pending_remove(&request->peer->asked, &request->pending);
	request->on_answer(request->peer->relay, request, NULL, &failure);
	request_destroy(request);
}

void relay_watch_own(struct request *request, int timeout_ms, const char *why)
{
	const struct sandbox *sandbox = agent_sandbox(request->peer->agent);
	request->unanswered = why;
	request->away_ms = sandbox ? sandbox_away_ms(sandbox) : 0;
	ev_timer_init(&request->due, on_own_due, timeout_ms / 1000.0, 0.0);
	ev_timer_start(request->peer->relay->config.loop, &request->due);
}
