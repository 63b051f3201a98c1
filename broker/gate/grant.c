/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant.h"

#include <stdio.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "broker/gate/grant_answer.h"
#include "broker/gate/grant_ask.h"
#include "broker/gate/grant_audit.h"
#include "broker/gate/grant_guard.h"
#include "broker/gate/grant_once.h"
#include "broker/gate/grant_resolve.h"
#include "broker/session/answer.h"

enum { SUBJECT_TEXT_MAX = 512 }; // bytes of a command shown to a user

/* ---- answering session/request_permission by policy ---- */

/* The option kinds for yes and for no, the narrower first (ACP, PermissionOptionKind). */
static const char *const allow_kinds[] = {"allow_once", "allow_always", NULL};
static const char *const reject_kinds[] = {"reject_once", "reject_always", NULL};

/*
 * The raw id of the first offered option of one of the kinds; ignores the order of options
 * otherwise.
 */
static struct span find_option(const struct json_doc *options, const char *const *kinds)
{
	for (; *kinds; kinds++) {
		for (json_node option = json_first(options, 0); option != JSON_NODE_NONE;
			option = json_next(options, option)) {
			json_node id = json_get(options, option, "optionId");
			if (json_string_is(options, json_get(options, option, "kind"), *kinds) &&
				json_is(options, id, JSON_STRING)) {
				return json_raw(options, id);
			}
		}
	}
	return (struct span){NULL, 0};
}

/* Answers with an option that the agent offered, or with `cancelled` if none fits. */
static void answer_grant(struct peer *peer, const struct call *call, bool allow)
{
	struct span raw = message_place(&call->message, PLACE_OPTIONS);
	struct json_doc *options = raw.len > 0 ? json_doc_parse_unchecked(raw, NULL) : NULL;
	struct span id = {NULL, 0};
	struct buf result;
	buf_init(&result, SIZE_MAX / 2);
	if (options) {
		id = find_option(options, allow ? allow_kinds : reject_kinds);
	}
	bool ok = id.len == 0
	                  ? buf_append(&result,
				    SPAN_LITERAL("{\"outcome\":{\"outcome\":\"cancelled\"}}"), NULL)
	                  : buf_append(&result,
				    SPAN_LITERAL(
					    "{\"outcome\":{\"outcome\":\"selected\",\"optionId\":"),
				    NULL) &&
	                            buf_append(&result, id, NULL) &&
	                            buf_append(&result, SPAN_LITERAL("}}"), NULL);
	if (ok) {
		peer_answer(peer, call->message.id, buf_span(&result));
	}
	buf_finish(&result);
	json_doc_destroy(options);
}

/* ---- the decision ---- */

static void deny(
	struct peer *peer, const struct call *call, const struct subject *subject, const char *rule)
{
	char what[SUBJECT_TEXT_MAX];
	struct error err;
	peer_fail_method(peer, call->method, call->message.id,
		failure_set(&err, "PERMISSION_DENIED", "session", "%s %s: refused by policy (%s)",
			call->message.method, subject_text(subject, what, sizeof(what)), rule));
}

/* True if the request needs nothing further; false if it goes on to be served. */
static bool apply(struct peer *peer, const struct session *session, const struct call *call,
	const struct subject *subject, const struct grant_decision *decision, const char *old_text)
{
	const struct policy_verdict *verdict = &decision->verdict;
	bool is_grant = subject->operation == POLICY_GRANT;
	if (verdict->decision == POLICY_PENDING) {
		if (!is_grant) {
			grant_ask(peer, call, subject, decision, old_text);
		}
		return !is_grant; // the user answers the agent's own question
	}
	grant_audit(peer->relay, session, subject, decision);
	bool allows = grant_decision_allows(verdict->decision);
	if (is_grant) {
		answer_grant(peer, call, allows);
	} else if (!allows) {
		deny(peer, call, subject, verdict->rule);
	}
	return is_grant || !allows;
}

/* Goes on with a call of the agent whose paths are known. */
static void resume(struct peer *peer, const struct call *call)
{
	peer->relay->ops->on_agent_request(peer, call);
}

bool grant_intercept(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	struct subject subject;
	struct error unread;
	bool is_read = subject_read(&subject, call->method->operation, &call->message, &unread);
	if (call->method->serve) {
		subject.shell_line = false; // without arguments, too, it is a program and no line
	}
	struct session *session = relay_session_of_agent(peer, &call->message);
	if (grant_resolve(peer, call, &subject, session, resume)) {
		subject_finish(&subject);
		return true;
	}
	grant_take_paths(&subject, call);
	struct grant_decision decision =
		grant_decide(relay->config.profile->policy, session ? session->memory : NULL,
			&subject, session ? (const char *const *)session->roots : NULL);
	grant_guard_decide(peer, session, &subject, &decision);
	char *old_text = NULL;
	grant_once_decide(session, &call->message, &subject, &decision, &old_text);
	log_debug("%s: %s: %s (%s)", peer->hop, call->message.method,
		policy_decision_name(decision.verdict.decision), decision.verdict.rule);
	bool is_done = true;
	if (!is_read && decision.verdict.decision == POLICY_PENDING) {
		/* Without readable options it has no answer. */
		peer_fail_method(
			peer, call->method, call->message.id, error_at(&unread, "session"));
	} else {
		is_done = apply(peer, session, call, &subject, &decision, old_text);
	}
	free(old_text);
	subject_finish(&subject);
	return is_done;
}
