/* SPDX-License-Identifier: MIT */
#include "broker/methods/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "broker/gate/grant_answer.h"
#include "broker/gate/grant_guard.h"
#include "broker/gate/grant_resolve.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"
#include "broker/session/root_names.h"

void explain_write(struct json_writer *writer, const char *operation,
	const struct grant_decision *decision, const struct memory *memory)
{
	json_write_object(writer);
	json_write_member(writer, "operation", operation);
	json_write_member(writer, "decision", policy_decision_name(decision->verdict.decision));
	json_write_member(writer, "rule", decision->verdict.rule);
	json_write_member(writer, "source", grant_source_name(decision->source));
	json_write_key(writer, "remembered");
	memory_write(memory, writer);
	json_write_object_end(writer);
}

/*
 * Uses its own buffer, because the remembered answers may be longer than the broker's other
 * messages.
 */
static void answer(struct relay *relay, const struct call *call, const char *operation,
	const struct grant_decision *decision, const struct memory *memory)
{
	struct buf out;
	struct json_writer writer;
	buf_init(&out, SIZE_MAX / 2);
	json_write_begin(&writer, &out);
	explain_write(&writer, operation, decision, memory);
	if (json_write_end(&writer, NULL)) {
		relay_answer(relay, call->message.id, buf_span(&out));
	}
	buf_finish(&out);
}

/* The editor names files by their paths here; policy knows the agent's paths. */
static void map_paths(const struct session *session, struct subject *subject)
{
	for (char **path = subject->paths; path && *path && session->peer; path++) {
		char *mapped = relay_map_path(session->peer, PATH_TO_RUNTIME, *path);
		free(*path);
		*path = mapped;
	}
}

/* The links in the paths are resolved. */
static void resume(struct peer *peer, const struct call *call)
{
	explain_call(peer->relay, call);
}

/* True if the call was set aside until the paths are resolved as for a real decision. */
static bool resolve_paths(
	const struct call *call, const struct session *session, struct subject *subject)
{
	map_paths(session, subject);
	if (call->resolved) {
		grant_take_paths(subject, call);
		return false;
	}
	return session->peer && grant_resolve(session->peer, call, subject, session, resume);
}

static bool explain_operation(struct relay *relay, const struct call *call,
	const struct session *session, enum policy_operation operation, struct error *err)
{
	struct subject subject;
	struct span params = message_place(&call->message, PLACE_PARAMS);
	if (!subject_read_params(&subject, operation, params, err)) {
		return false;
	}
	if (!resolve_paths(call, session, &subject)) {
		struct grant_decision decision = grant_decide(relay->config.profile->policy,
			session->memory, &subject, (const char *const *)session->roots);
		if (session->peer) {
			grant_guard_decide(session->peer, session, &subject, &decision);
		}
		answer(relay, call, policy_operation_name(operation), &decision, session->memory);
	}
	subject_finish(&subject);
	return true;
}

static void explain_mode(
	struct relay *relay, const struct call *call, const struct session *session)
{
	struct grant_decision decision = {
		.verdict = policy_decide_agent_modes(relay->config.profile->policy)};
	bool is_mode = decision.verdict.rule == policy_line(relay->config.profile->policy, 0);
	decision.source = is_mode ? GRANT_BY_MODE : GRANT_BY_RULE;
	answer(relay, call, choice_method(CHOICE_MODE), &decision, session->memory);
}

static bool explain(
	struct relay *relay, const struct call *call, const char *operation_name, struct error *err)
{
	enum policy_operation operation;
	const char *mode_operation = choice_method(CHOICE_MODE);
	const struct session *session = relay_session_of(relay, &call->message);
	if (!session) {
		return error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS",
			"sessionId names no session that is open");
	}
	if (operation_name && strcmp(operation_name, mode_operation) == 0) {
		explain_mode(relay, call, session);
		return true;
	}
	if (!operation_name || !subject_operation(operation_name, &operation)) {
		return error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS",
			"operation: expected read, write, terminal, grant, the method of one of "
			"them, or %s",
			mode_operation);
	}
	return explain_operation(relay, call, session, operation, err);
}

void explain_call(struct relay *relay, const struct call *call)
{
	struct error err;
	struct span params = message_place(&call->message, PLACE_PARAMS);
	struct json_doc *doc = params.len > 0 ? json_doc_parse_unchecked(params, NULL) : NULL;
	char *operation = doc ? json_string(doc, json_get(doc, 0, "operation")) : NULL;
	if (!explain(relay, call, operation, &err)) {
		relay_fail(relay, call->message.id, error_at(&err, "session"));
	}
	free(operation);
	json_doc_destroy(doc);
}
