/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_ask.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "broker/gate/grant_audit.h"
#include "broker/gate/grant_question.h"
#include "broker/gate/grant_resolve.h"
#include "broker/session/answer.h"
#include "broker/session/question.h"
#include "broker/session/root_names.h"
#include "broker/session/serving.h"
#include "broker/session/unanswered.h"

static void finish(void *part, void *owner)
{
	struct asking *asking = part;
	desk_drop(&asking->waiting);
	old_text_destroy(asking->old_text);
	free(asking->shown_text);
}

static const struct part_type type = {.size = sizeof(struct asking), .finish = finish};

struct asking *asking_of(struct request *request)
{
	return parts_get(&request->parts, &type);
}

static struct asking *asking_find(const struct request *request)
{
	return parts_find(&request->parts, &type);
}

void grant_close_question(struct relay *relay, const struct request *request)
{
	if (question_find(request)) {
		question_close(relay, request, false);
	}
}

/* ---- the answer ---- */

/* An "always" holds for the same subject, in the same session. */
static void remember(
	struct relay *relay, const struct request *request, enum policy_decision decision)
{
	bool is_always = decision == POLICY_ALLOW_ALWAYS || decision == POLICY_REJECT_ALWAYS;
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (!is_always || !session) {
		return;
	}
	struct subject *subject = question_find(request)->subject;
	if (memory_has_room(session->memory, subject)) {
		memory_add(session->memory, subject, decision == POLICY_ALLOW_ALWAYS);
	} else {
		log_warning("session %s: the answer is not remembered: there are %d already",
			session->id, MEMORY_MAX);
	}
}

static void refuse(
	struct request *request, const struct grant_answer *answer, const struct error *failure)
{
	struct error err;
	struct waiting *waiting = &asking_of(request)->waiting;
	const char *method = parcel_method(waiting->parcel)->name;
	if (failure) {
		err = *failure;
		err.detail = (struct span){NULL, 0};
		error_prefix(&err, "%s: refused", method);
	} else {
		failure_set(&err, "PERMISSION_DENIED", "session", "%s: refused: %s", method,
			answer->reason);
	}
	desk_fail(waiting, error_at(&err, "session"));
}

static void resume(struct peer *peer, const struct call *call)
{
	peer->relay->ops->pass_agent_request(peer, call);
}

static void go_on(struct request *request, char **resolved)
{
	struct call call;
	struct peer *peer = request->peer;
	struct relay *relay = peer->relay;
	struct waiting *waiting = &asking_of(request)->waiting;
	const struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (desk_open(waiting, &call)) {
		call.resolved = resolved;
		if (!grant_resolve_again(peer, &call, session, resume)) {
			resume(peer, &call);
		}
	}
	desk_drop(waiting);
}

/* Sends on the call that was set aside, or refuses it. */
static void act(
	struct request *request, const struct grant_answer *answer, const struct error *failure)
{
	struct relay *relay = request->peer->relay;
	bool allowed = grant_decision_allows(answer->decision);
	const struct subject *subject = question_find(request)->subject;
	char **resolved = subject->is_resolved
	                          ? subject->paths
	                          : NULL; // remember() takes the content of the subject
	remember(relay, request, answer->decision);
	question_close(relay, request, allowed);
	if (allowed) {
		go_on(request, resolved);
	} else {
		refuse(request, answer, failure);
	}
}

static void on_decided(struct relay *relay, struct request *request, const struct call *answer,
	const struct error *failure)
{
	struct grant_answer decided = grant_settle(relay, request, answer, failure);
	if (!request->peer->is_down) {
		act(request, &decided, failure);
	}
}

/* ---- asking ---- */

static bool send_question(struct peer *peer, struct request *request, const struct call *call,
	const struct question_reason *reason, struct error *err)
{
	struct relay *relay = peer->relay;
	if (!desk_has_room(&relay->desk, STAGE_USER, call)) {
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"%d MiB of requests are already waiting for the user's answers",
			RELAY_WAITING_MAX >> 20);
	}
	/* Uses the agent's own id, so that the agent can cancel the question. */
	if (!pending_add(&relay->asked_editor, &request->pending, call->message.id, err)) {
		return false;
	}
	if (!grant_question_write(request, call, reason, err)) {
		pending_remove(&relay->asked_editor, &request->pending);
		return false;
	}
	return true;
}

static void show(struct request *request, struct span question)
{
	relay_send_editor(request->peer->relay, question);
	relay_watch_question(request);
}

/* Whether the file holds the text that the agent's own question showed the user. */
static bool holds_what_was_shown(
	const struct request *request, const struct old_text_answer *answer)
{
	const char *shown = asking_find(request)->shown_text;
	struct buf text;
	if (!shown || answer->kind == OLD_TEXT_UNKNOWN) {
		return false;
	}
	buf_init(&text, SIZE_MAX / 2);
	bool is_it = answer->kind == OLD_TEXT_NEW ? !*shown
	                                          : json_decode_string(answer->json, &text, NULL) &&
	                                                    span_is(buf_span(&text), shown);
	buf_finish(&text);
	return is_it;
}

/* The question was not shown, and is not needed. */
static void allow_unasked(struct request *request)
{
	struct peer *peer = request->peer;
	const struct grant_answer yes = {.decision = POLICY_ALLOW_ONCE, .by = AUDIT_BY_PERSON};
	pending_remove(&peer->relay->asked_editor, &request->pending);
	grant_note_allowed(peer->relay, request);
	act(request, &yes, NULL);
	request_destroy(request);
}

/* The file's content is known: shows the question, or answers it unasked. */
static void on_old_text(void *data, const struct old_text_answer *answer)
{
	struct request *request = data;
	if (holds_what_was_shown(request, answer)) {
		allow_unasked(request);
		return;
	}
	struct buf question;
	buf_init(&question, SIZE_MAX / 2);
	bool is_complete = grant_question_complete(&question, request, answer);
	struct asking *asking = asking_of(request);
	old_text_destroy(asking->old_text);
	asking->old_text = NULL;
	question_of(request)->is_hidden = false;
	show(request, buf_span(is_complete ? &question : &request->message));
	buf_finish(&question);
	buf_finish(&request->message);
}

/*
 * Begins to read the file that will be written, in the sandbox or on this machine; false if there
 * is nothing to read.
 */
static bool load_old_text(
	struct request *request, const struct subject *subject, struct span question)
{
	struct peer *peer = request->peer;
	bool is_ours = relay_uses_toolhost(peer);
	struct old_text_source source = {
		.loop = peer->relay->config.loop,
		.sandbox = is_ours ? agent_sandbox(peer->agent) : NULL,
		.is_resolved = subject->is_resolved,
		.pool = peer->relay->config.pool,
	};
	struct asking *asking = asking_of(request);
	if (asking->diff_at == 0 || (!source.sandbox && !source.pool) ||
		!buf_append(&request->message, question, NULL)) {
		return false;
	}
	char *path = is_ours ? mem_strdup(subject->paths[0])
	                     : relay_map_path(peer, PATH_TO_LOCAL, subject->paths[0]);
	asking->old_text = old_text_load(&source, path, on_old_text, request);
	question_of(request)->is_hidden = true;
	free(path);
	return true;
}

void grant_ask(struct peer *peer, const struct call *call, const struct subject *subject,
	const struct grant_decision *decision, const char *old_text)
{
	const struct question_reason reason = grant_question_reason(decision);
	struct relay *relay = peer->relay;
	struct error err;
	struct request *request = request_create(peer, NULL);
	struct session *session = relay_session_of_agent(peer, &call->message);
	bool can_remember = session && memory_has_room(session->memory, subject);
	request->on_answer = on_decided;
	struct asking *asking = asking_of(request);
	struct question *question = question_of(request);
	question->subject = subject_copy(subject);
	asking->request = request;
	asking->shown_text = mem_strdup_or_null(old_text);
	question->options = can_remember ? grant_options_always : grant_options_once;
	request->session_id = session ? mem_strdup(session->id) : NULL;
	grant_note_asked(request, subject, reason.rule);
	if (!send_question(peer, request, call, &reason, &err)) {
		peer_fail_method(peer, call->method, call->message.id, error_at(&err, "session"));
		request_destroy(request);
		return;
	}
	desk_hold(&relay->desk, &asking->waiting, STAGE_USER, peer, call);
	if (!load_old_text(request, question->subject, buf_span(&relay->scratch))) {
		show(request, buf_span(&relay->scratch));
	}
}

static const struct error cancelled = {.code = ERROR_DENIED,
	.reason = "PERMISSION_DENIED",
	.stage = "session",
	.text = "the session was cancelled before anyone answered"};

static void decide_at_once(
	struct relay *relay, struct request *request, const struct error *failure)
{
	pending_remove(&relay->asked_editor, &request->pending);
	relay_withdraw_question(relay, request);
	on_decided(relay, request, NULL, failure);
	request_destroy(request);
}

const struct error grant_taken_back = {.code = ERROR_DENIED,
	.reason = "PERMISSION_DENIED",
	.stage = "session",
	.text = "the agent has taken its request back"};

void grant_fail(const struct asker *asker, const struct error *failure)
{
	struct peer *peer = asker->sender;
	bool is_cancelled_question = method_asks(asker->method, POLICY_GRANT) &&
	                             failure_is(failure, "PERMISSION_DENIED");
	if (peer->is_down) {
		return;
	}
	if (is_cancelled_question) {
		peer_answer(
			peer, asker->id, SPAN_LITERAL("{\"outcome\":{\"outcome\":\"cancelled\"}}"));
	} else {
		peer_fail_method(peer, asker->method, asker->id, failure);
	}
}

/*
 * If the editor shows the question already, it is asked to take it back; its reply ends the
 * question.
 */
bool grant_ask_takes_cancel(struct waiting *waiting)
{
	struct asking *asking = CONTAINER_OF(waiting, struct asking, waiting);
	if (!asking->old_text) {
		return false;
	}
	decide_at_once(waiting->sender->relay, asking->request, &grant_taken_back);
	return true;
}

bool grant_take_back(struct peer *peer, struct span id)
{
	struct relay *relay = peer->relay;
	LIST_FOR_EACH(pending, &relay->asked_editor.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (request->on_answer == on_decided && request->peer == peer &&
			span_equals(pending_origin(pending), id)) {
			decide_at_once(relay, request, &grant_taken_back);
			return true;
		}
	}
	return false;
}

void grant_cancel_session(struct relay *relay, const char *session_id)
{
	struct pending *pending = NULL;
	struct session *session = session_find(&relay->sessions, session_id);
	if (session) {
		memory_end_turn(session->memory);
	}
	grant_resolve_cancel(relay, session_id, &cancelled);
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
			decide_at_once(
				relay, CONTAINER_OF(pending, struct request, pending), &cancelled);
		}
	} while (pending);
}
