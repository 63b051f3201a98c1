/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "broker/gate/grant_once.h"
#include "broker/gate/grant_resolve.h"
#include "broker/policy/subject_env.h"
#include "broker/session/question.h"
#include "broker/session/tool_call_id.h"

/* The parts of a question's audit line, kept until the answer. */
struct grant_note {
	enum policy_operation operation;
	char *subject;   // owned; NULL if there is no audit log
	char *variables; // owned; NULL also if no variables were added
	char *rule;      // owned; NULL if there is no audit log
	char *options;   // owned, raw JSON; of an agent's own question; NULL: the broker's own
	struct subject **once; // owned; if `options` is set: what a yes allows once more; or NULL
	char *tool_call;       // owned; if `options` is set: the id of the question's tool call
	bool is_decided;       // its line is written
};

static void finish(void *part, void *request);

static const struct part_type type = {.size = sizeof(struct grant_note), .finish = finish};

/* For an open question; NULL for any other request. */
static struct grant_note *note_of(const struct request *request)
{
	struct grant_note *note = parts_find(&request->parts, &type);
	return note && !note->is_decided ? note : NULL;
}

void grant_audit(struct relay *relay, const struct session *session, const struct subject *subject,
	const struct grant_decision *decision)
{
	enum audit_by by = decision->source == GRANT_BY_MEMORY     ? AUDIT_BY_REMEMBERED
	                   : decision->source == GRANT_BY_QUESTION ? AUDIT_BY_PERSON
	                                                           : AUDIT_BY_POLICY;
	usage_note_decision(relay, session, decision->verdict.decision, by);
	if (!relay->config.audit) {
		return;
	}
	char *text = subject_text_create(subject);
	char *variables = subject_env_names(subject);
	audit_write(
		relay->config.audit, &(struct audit_line){
					     .session = session ? session->id : NULL,
					     .operation = policy_operation_name(subject->operation),
					     .subject = text,
					     .variables = variables,
					     .rule = decision->verdict.rule,
					     .decision = decision->verdict.decision,
					     .by = by,
				     });
	free(text);
	free(variables);
}

/* ---- questions ---- */

void grant_note_asked(struct request *request, const struct subject *subject, const char *rule)
{
	struct grant_note *note = parts_get(&request->parts, &type);
	note->operation = subject->operation;
	if (request->peer->relay->config.audit) {
		note->subject = subject_text_create(subject);
		note->variables = subject_env_names(subject);
		note->rule = mem_strdup(rule);
	}
}

static char *read_tool_call(const struct message *message)
{
	struct buf id;
	buf_init(&id, SIZE_MAX / 2);
	char *text = json_decode_string(message_place(message, PLACE_TOOL_CALL_ID), &id, NULL)
	                     ? mem_strndup(buf_span(&id))
	                     : NULL;
	buf_finish(&id);
	return text;
}

void grant_note_shown(struct peer *peer, const struct call *call)
{
	LIST_FOR_EACH(pending, &peer->relay->asked_editor.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		struct grant_note *note = request->peer == peer ? note_of(request) : NULL;
		if (note && note->once &&
			(!note->tool_call || tool_call_id_names(&call->message, note->tool_call))) {
			grant_once_free(note->once);
			note->once = NULL;
		}
	}
}

static void note_forwarded(
	struct request *request, const struct call *call, const struct session *owner)
{
	struct subject subject;
	const struct policy *policy = request->peer->relay->config.profile->policy;
	if (!request->peer->relay->config.audit && !policy_is_given(policy)) {
		grant_note_asked(request, &(struct subject){.operation = POLICY_GRANT}, NULL);
		return;
	}
	subject_read_tool_call(&subject, &call->message);
	grant_take_paths(&subject, call);
	struct grant_decision decision = grant_decide(
		policy, NULL, &subject, owner ? (const char *const *)owner->roots : NULL);
	grant_note_asked(request, &subject, decision.verdict.rule);
	struct grant_note *note = note_of(request);
	note->once = grant_once_read(&call->message, &subject, owner);
	note->tool_call = note->once ? read_tool_call(&call->message) : NULL;
	subject_finish(&subject);
}

void grant_note_forwarded(struct request *request, const struct call *call)
{
	if (!method_asks(call->method, POLICY_GRANT)) {
		return;
	}
	const struct session *owner = relay_session_of_agent(request->peer, &call->message);
	grant_note_shown(request->peer, call);
	note_forwarded(request, call, owner);
	note_of(request)->options = mem_strndup(message_place(&call->message, PLACE_OPTIONS));
}

/* A question was answered, or never will be: writes its line, once. */
static void note_decided(
	struct relay *relay, struct request *request, const struct grant_answer *answer)
{
	struct grant_note *note = note_of(request);
	if (!note) {
		return;
	}
	note->is_decided = true;
	usage_note_decision(relay,
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL,
		answer->decision, answer->by);
	audit_write(
		relay->config.audit, &(struct audit_line){
					     .session = request->session_id,
					     .operation = policy_operation_name(note->operation),
					     .subject = note->subject,
					     .variables = note->variables,
					     .rule = note->rule,
					     .decision = answer->decision,
					     .by = answer->by,
				     });
}

static void read_answer(struct grant_answer *out, const struct call *call, const char *options)
{
	if (call->message.is_error) {
		grant_answer_read_error(out, message_place(&call->message, PLACE_ERROR));
	} else {
		grant_answer_read(
			out, message_place(&call->message, PLACE_RESULT), span_of(options));
	}
}

void grant_note_answered(struct relay *relay, struct request *request, const struct call *call)
{
	struct grant_answer answer;
	const struct grant_note *note = note_of(request);
	if (!note) {
		return;
	}
	read_answer(&answer, call, note->options);
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (session && answer.by == AUDIT_BY_PERSON && grant_decision_allows(answer.decision)) {
		grant_once_add(session, note->once);
	}
	note_decided(relay, request, &answer);
}

void grant_note_allowed(struct relay *relay, struct request *request)
{
	const struct grant_answer answer = {.decision = POLICY_ALLOW_ONCE, .by = AUDIT_BY_PERSON};
	struct grant_note *note = note_of(request);
	if (note && note->rule) {
		mem_set_text(&note->rule, grant_once_rule);
	}
	note_decided(relay, request, &answer);
}

/* Counts as a no; the failure says who decided. */
static struct grant_answer answer_of_failure(const struct error *failure)
{
	bool is_late = failure && failure_is(failure, "TIMEOUT_EXCEEDED");
	bool is_cancelled = failure && failure_is(failure, "PERMISSION_DENIED");
	return (struct grant_answer){.decision = POLICY_REJECT_ONCE,
		.by = is_late        ? AUDIT_BY_TIMEOUT
	              : is_cancelled ? AUDIT_BY_PERSON
	                             : AUDIT_BY_NOBODY};
}

void grant_note_failed(struct relay *relay, struct request *request, const struct error *failure)
{
	struct grant_answer answer = answer_of_failure(failure);
	note_decided(relay, request, &answer);
}

/* A question that nobody answered gets its line too. */
static void finish(void *part, void *request)
{
	struct grant_note *note = part;
	grant_note_failed(((struct request *)request)->peer->relay, request, NULL);
	free(note->subject);
	free(note->variables);
	free(note->rule);
	free(note->options);
	grant_once_free(note->once);
	free(note->tool_call);
}

struct grant_answer grant_settle(struct relay *relay, struct request *request,
	const struct call *answer, const struct error *failure)
{
	struct grant_answer decided = answer_of_failure(failure);
	if (answer) {
		read_answer(&decided, answer, question_find(request)->options);
	}
	note_decided(relay, request, &decided);
	return decided;
}
