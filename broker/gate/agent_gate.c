/* SPDX-License-Identifier: MIT */
#include "broker/gate/agent_gate.h"

#include <stdio.h>

#include "base/json_names.h"
#include "base/log.h"
#include "broker/policy/audit.h"
#include "broker/session/answer.h"
#include "broker/session/serving.h"

/* JSON-RPC 2.0. */
static const char *const envelope_names[] = {
	"jsonrpc", "id", "method", "params", "result", "error", NULL};

/* ACP: the names of all members in the params of an agent's requests. */
static const char *const param_names[] = {"_meta", "args", "command", "content", "cwd", "env",
	"kind", "limit", "line", "locations", "name", "optionId", "options", "outputByteLimit",
	"path", "rawInput", "rawOutput", "sessionId", "status", "terminalId", "title", "toolCall",
	"toolCallId", "value", NULL};

/* Free-form in ACP. Parts that policy cannot read count as unknown (broker/policy/subject.h). */
static const char *const opaque_names[] = {"_meta", "rawInput", "rawOutput", "content", NULL};

/* Whether the broker decides anything for this agent. */
static bool is_guarded(const struct peer *peer)
{
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	const struct sandbox_capabilities *can = sandbox ? sandbox_capabilities(sandbox) : NULL;
	return policy_is_given(peer->relay->config.profile->policy) || relay_uses_toolhost(peer) ||
	       (can && (can->confined || can->isolated || can->maps_paths));
}

bool agent_gate_takes(const struct peer *peer, const struct message *message, struct error *err)
{
	const struct json_name_rules rules = {.known = envelope_names, .is_flat = true};
	return !is_guarded(peer) || json_names_check(message->text, &rules, err);
}

static bool is_own(const struct call *call)
{
	return call->method->route == ROUTE_OWN;
}

/* Notes a decision about a whole method: counts it and writes an audit line. */
static void note_refused(struct peer *peer, const struct call *call, const char *rule)
{
	struct relay *relay = peer->relay;
	const struct session *session = relay_session_of_agent(peer, &call->message);
	usage_note_decision(relay, session, POLICY_REJECT_ONCE, AUDIT_BY_POLICY);
	if (relay->config.audit) {
		audit_write(relay->config.audit, &(struct audit_line){
							 .session = session ? session->id : NULL,
							 .operation = call->message.method,
							 .subject = "",
							 .rule = rule,
							 .decision = POLICY_REJECT_ONCE,
							 .by = AUDIT_BY_POLICY,
						 });
	}
}

/* Whether policy refuses a method that it does not know. */
static bool is_denied(struct peer *peer, const struct call *call, const char **out_rule)
{
	if (call->method->name) {
		return false;
	}
	struct policy_verdict verdict = policy_decide_unknown(peer->relay->config.profile->policy);
	if (verdict.decision != POLICY_REJECT_ONCE) {
		return false;
	}
	*out_rule = verdict.rule;
	note_refused(peer, call, verdict.rule);
	return true;
}

static void refuse(struct peer *peer, const struct call *call, struct error *err)
{
	error_prefix(err, "%s", call->message.method);
	peer_fail_method(peer, call->method, call->message.id, err);
	log_failure(LOG_LEVEL_INFO, err, "%s: refused: %s", peer->hop, err->text);
}

bool agent_gate_request(struct peer *peer, const struct call *call)
{
	const struct json_name_rules rules = {.known = param_names, .opaque = opaque_names};
	struct error err;
	const char *rule;
	bool is_tool = call->method->means == MEANS_TOOL;
	if (is_own(call)) {
		failure_set(&err, "METHOD_NOT_FOUND", "relay",
			"the broker's own methods are for the editor alone");
		refuse(peer, call, &err);
		return true;
	}
	if ((is_tool || relay_toolhost_serves(peer, call->message.method)) && is_guarded(peer) &&
		!json_names_check(message_place(&call->message, PLACE_PARAMS), &rules, &err)) {
		refuse(peer, call, error_at(&err, "session"));
		return true;
	}
	if (is_denied(peer, call, &rule)) {
		failure_set(&err, "PERMISSION_DENIED", "session", "refused by policy (%s)", rule);
		refuse(peer, call, &err);
		return true;
	}
	return false;
}

/*
 * A request without an id is a notification. Some editors look only at the method, and would carry
 * it out without a decision. Dropping it loses nothing of ACP, because nobody could answer it.
 */
static bool lacks_id(struct peer *peer, const struct call *call)
{
	if (!is_guarded(peer) || !call->method->is_request) {
		return false;
	}
	note_refused(peer, call, "a request without an id");
	log_warning("%s: %s was dropped: it is a request, but has no id", peer->hop,
		call->message.method);
	return true;
}

bool agent_gate_notification(struct peer *peer, const struct call *call)
{
	const char *rule = "it is one of the broker's own methods";
	if (lacks_id(peer, call)) {
		return true;
	}
	if (!is_own(call) && !is_denied(peer, call, &rule)) {
		return false;
	}
	log_debug("%s: notification %s dropped (%s)", peer->hop, call->message.method, rule);
	return true;
}
