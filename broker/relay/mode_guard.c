/* SPDX-License-Identifier: MIT */
#include "broker/relay/mode_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "broker/relay/choice_gate.h"
#include "broker/relay/relay_editor.h"
#include "broker/relay/relay_end.h"
#include "broker/relay/relay_order.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"
#include "broker/session/notice.h"
#include "broker/session/session_update.h"
#include "broker/session/unanswered.h"

enum { ATTEMPTS_MAX = 5 }; // an agent that changes again and again is not fought with

struct mode_guard *mode_guard_of(struct session *session)
{
	if (!session->guard) {
		session->guard = mem_alloc_zero(sizeof(*session->guard));
	}
	if (session->peer) {
		snprintf(session->guard->agent, sizeof(session->guard->agent), "%s",
			session->peer->agent_name);
	}
	return session->guard;
}

const char *mode_guard_agent(struct relay *relay, const struct session *session)
{
	const struct peer *peer =
		session && session->peer ? session->peer : relay_running_peer(relay);
	return session && session->guard ? session->guard->agent : peer ? peer->agent_name : "";
}

/* Copies what nobody knows: a mode, or "" where it is all that the agent does. */
static bool find_unknown(const struct mode_guard *guard, char out_mode[MODES_NAME_MAX])
{
	bool is_found = false;
	struct json_doc *doc =
		guard->options ? json_doc_parse_unchecked(span_of(guard->options), NULL) : NULL;
	if (doc) {
		is_found = modes_find_unknown(guard->agent, doc, 0, out_mode);
	}
	json_doc_destroy(doc);
	if (!is_found && guard->mode[0]) {
		is_found = modes_judge(guard->agent, guard->mode) == MODES_UNKNOWN;
		memcpy(out_mode, guard->mode, sizeof(guard->mode));
	}
	if (!is_found && guard->is_modeless) {
		is_found = guard->agent[0] && !modes_know_agent(guard->agent);
		out_mode[0] = '\0';
	}
	return is_found;
}

void mode_guard_tell_unknown(struct relay *relay, struct session *session)
{
	char mode[MODES_NAME_MAX];
	char what[MODE_TEXT_MAX];
	char text[2 * MODE_TEXT_MAX];
	struct mode_guard *guard = session->guard;
	const char *rule = mode_guard_rule(relay);
	if (!rule || !guard || guard->told_unknown || !find_unknown(guard, mode)) {
		return;
	}
	guard->told_unknown = true;
	if (mode[0]) {
		snprintf(what, sizeof(what), "works in mode \"%s\", which", mode);
	} else {
		snprintf(what, sizeof(what), "tells of no modes, and");
	}
	snprintf(text, sizeof(text),
		"the agent \"%s\" %s acp-broker does not know: it may act without asking, and "
		"policy (%s) decides only about what it asks; choose a mode in which it asks, or "
		"set agent-modes = allow in the policy, which allows it without this note",
		guard->agent, what, rule);
	notice_send(relay, session, text, false);
}

void mode_guard_destroy(struct mode_guard *guard)
{
	if (!guard) {
		return;
	}
	mode_news_clear(&guard->news);
	free(guard->options);
	free(guard->barred);
	free(guard);
}

const char *mode_guard_rule(const struct relay *relay)
{
	struct policy_verdict verdict = policy_decide_agent_modes(relay->config.profile->policy);
	return verdict.decision == POLICY_REJECT_ONCE ? verdict.rule : NULL;
}

void mode_guard_describe(char text[MODE_TEXT_MAX], const char *config_id, const char *value)
{
	if (config_id[0]) {
		snprintf(text, MODE_TEXT_MAX, "%s = \"%s\"", config_id, value);
	} else {
		snprintf(text, MODE_TEXT_MAX, "mode \"%s\"", value);
	}
}

void mode_guard_audit(struct relay *relay, const struct session *session, const char *what)
{
	usage_note_decision(relay, session, POLICY_REJECT_ONCE, AUDIT_BY_POLICY);
	audit_write(relay->config.audit, &(struct audit_line){
						 .session = session ? session->id : NULL,
						 .operation = choice_method(CHOICE_MODE),
						 .subject = what,
						 .rule = mode_guard_rule(relay),
						 .decision = POLICY_REJECT_ONCE,
						 .by = AUDIT_BY_POLICY,
					 });
}

/* ---- a session that takes no prompt ---- */

static void bar(
	struct relay *relay, struct session *session, const struct modes_fix *fix, const char *why)
{
	struct mode_guard *guard = session->guard;
	char what[MODE_TEXT_MAX];
	char text[2 * MODE_TEXT_MAX];
	mode_guard_describe(what, fix->config_id, fix->from);
	snprintf(text, sizeof(text),
		"the agent works with %s, in which it does not ask about everything: refused by "
		"policy (%s), and %s; choose another, or set agent-modes = allow in the policy",
		what, mode_guard_rule(relay), why);
	mem_set_text(&guard->barred, text);
	guard->barred_by_option = fix->config_id[0] != '\0';
	notice_send(relay, session, text, true);
	if (session->prompts > 0 && session->peer) {
		relay_cancel_prompt(relay, session);
	}
}

void mode_guard_unbar(struct mode_guard *guard, bool by_option)
{
	if (guard->barred && guard->barred_by_option == by_option) {
		free(guard->barred);
		guard->barred = NULL;
	}
}

bool mode_gate_admits(const struct session *session, struct error *err)
{
	return !session->guard || !session->guard->barred ||
	       error_set_reason(err, ERROR_DENIED, "PERMISSION_DENIED", "session/prompt: %s",
		       session->guard->barred);
}

/* ---- prompts that wait ---- */

static struct held *prompt_of(const struct relay *relay, const struct session *session)
{
	return desk_first(&relay->desk, (struct desk_pick){STAGE_MODE, NULL, session->id});
}

bool mode_gate_holds(struct relay *relay, const struct call *call)
{
	struct session *session = relay_session_of(relay, &call->message);
	bool is_busy = session && mode_gate_is_busy(session);
	if (!session || (!is_busy && choice_gate_fails(relay, session, call))) {
		return session != NULL;
	}
	if (!is_busy && !choices_first_stale(&session->choices)) {
		return false;
	}
	if (prompt_of(relay, session)) {
		relay_fail(relay, call->message.id,
			&(struct failure){"RESOURCE_LIMIT_EXCEEDED", "session",
				"a prompt waits already until the agent has changed its mode",
				{NULL, 0}});
		return true;
	}
	mode_guard_of(session);
	desk_hold(&relay->desk, NULL, STAGE_MODE, NULL, call);
	relay_order_begin_prompt(relay, session);
	if (!is_busy) {
		mode_guard_set_back(relay, session);
	}
	return true;
}

bool mode_gate_has_prompt(const struct relay *relay, const struct session *session)
{
	return prompt_of(relay, session) != NULL;
}

bool mode_gate_is_busy(const struct session *session)
{
	return session->guard && session->guard->is_busy;
}

/* Not while the session is opened once more: the answer to that says which mode it is in then. */
static void release_prompt(struct relay *relay, const struct session *session)
{
	struct call call;
	bool may_go = !relay_order_is_opening(relay, session);
	struct held *held = may_go ? prompt_of(relay, session) : NULL;
	if (held && relay->is_ending) {
		desk_fail(held, &relay_is_ending);
	} else if (held) {
		if (desk_open(held, &call)) {
			relay_on_editor_call(relay, &call);
			relay_order_look(relay);
		}
		desk_drop(held);
	}
}

void mode_gate_release(struct relay *relay, struct session *session)
{
	if (session->guard && !session->guard->is_busy) {
		release_prompt(relay, session);
	}
}

void mode_gate_cancel(struct relay *relay, const struct session *session)
{
	desk_cancel_prompts(&relay->desk, (struct desk_pick){STAGE_MODE, NULL, session->id});
}

/* ---- setting back ---- */

static void settle(struct mode_guard *guard)
{
	guard->is_busy = false;
	guard->fix_count = 0;
	guard->fix_at = 0;
}

/* ACP, session/set_mode and the like. */
static bool write_ask(struct relay *relay, const struct session *session,
	const struct choice *choice, uint64_t id, struct error *err)
{
	struct json_writer writer;
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_object(&writer);
	json_write_member(&writer, "jsonrpc", "2.0");
	json_write_member_int(&writer, "id", (long long)id);
	json_write_member(&writer, "method", choice_method(choice->kind));
	json_write_key(&writer, "params");
	json_write_object(&writer);
	json_write_member(&writer, "sessionId", session->agent_id);
	choice_write(choice, &writer);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

void mode_guard_show(struct relay *relay, const struct session *session,
	const struct choice *choice, const struct call *answer)
{
	struct json_writer writer;
	struct json_doc *doc =
		json_doc_parse_unchecked(message_place(&answer->message, PLACE_RESULT), NULL);
	json_node options = doc ? json_get(doc, 0, "configOptions") : JSON_NODE_NONE;
	if (choice->kind == CHOICE_MODE) {
		session_update_begin(relay, &writer, session->id, "current_mode_update");
		json_write_member(&writer, "currentModeId", choice->value);
		session_update_send(relay, &writer);
	} else if (options != JSON_NODE_NONE) {
		session_update_begin(relay, &writer, session->id, "config_option_update");
		json_write_member_raw(&writer, "configOptions", json_raw(doc, options));
		session_update_send(relay, &writer);
	}
	json_doc_destroy(doc);
}

/* What a set-back asks for. */
static struct choice choice_of(const struct modes_fix *fix)
{
	struct choice choice = {.kind = fix->config_id[0] ? CHOICE_OPTION : CHOICE_MODE,
		.is_boolean = fix->is_boolean};
	snprintf(choice.config_id, sizeof(choice.config_id), "%s", fix->config_id);
	snprintf(choice.value, sizeof(choice.value), "%s", fix->to);
	return choice;
}

static void was_set_back(struct relay *relay, struct session *session, const struct modes_fix *fix,
	const struct call *answer)
{
	char from[MODE_TEXT_MAX];
	char text[2 * MODE_TEXT_MAX];
	mode_guard_describe(from, fix->config_id, fix->from);
	snprintf(text, sizeof(text),
		"the agent was set back from %s to \"%s\": policy (%s) does not consent to what "
		"asks less",
		from, fix->to, mode_guard_rule(relay));
	struct choice choice = choice_of(fix);
	mode_guard_show(relay, session, &choice, answer);
	notice_send(relay, session, text, false);
}

struct session *mode_guard_take_answer(
	struct relay *relay, struct request *request, const struct failure *failure)
{
	struct session *session = session_find(&relay->sessions, request->session_id);
	if (!session || !session->guard || session->guard->asked != request) {
		return NULL; // closed, or opened once more, meanwhile
	}
	session->guard->asked = NULL;
	if (!session->peer) { // the agent has ended; what is had back of the session is read anew
		settle(session->guard);
		mode_news_clear(&session->guard->news);
		desk_fail_all(
			&relay->desk, (struct desk_pick){STAGE_MODE, NULL, session->id}, failure);
		return NULL;
	}
	return session;
}

static void on_set_back(struct relay *relay, struct request *request, const struct call *answer,
	const struct failure *failure)
{
	struct session *session = mode_guard_take_answer(relay, request, failure);
	if (!session) {
		return;
	}
	const struct modes_fix *fix = &session->guard->fixes[session->guard->fix_at];
	if (answer && !answer->message.is_error) {
		if (!fix->config_id[0]) {
			memcpy(session->guard->mode, fix->to, sizeof(session->guard->mode));
		}
		if (!mode_gate_is_back_in(session->guard, fix)) {
			was_set_back(relay, session, fix, answer);
		}
	} else {
		bar(relay, session, fix,
			failure ? failure->message : "the agent refuses to change it");
	}
	session->guard->fix_at++;
	mode_guard_set_back(relay, session);
}

struct request *mode_guard_ask(struct relay *relay, struct session *session,
	const struct choice *choice, mode_guard_answered *on_answer, struct error *err)
{
	struct peer *peer = session->peer;
	struct request *request = request_create(peer, NULL);
	request->on_answer = on_answer;
	request->session_id = mem_strdup(session->id);
	if (!pending_add(&peer->asked, &request->pending, (struct span){NULL, 0}, err)) {
		request_destroy(request);
		return NULL;
	}
	if (!write_ask(relay, session, choice, request->pending.id, err)) {
		pending_remove(&peer->asked, &request->pending);
		request_destroy(request);
		return NULL;
	}
	session->guard->asked = request;
	peer_send(peer, buf_span(&relay->scratch));
	relay_watch_own(request, relay->config.profile->start_timeout_ms,
		"the agent does not answer when asked to change it");
	return request;
}

/* One set-back; false where it cannot be tried, and the session is barred. */
static bool try_set_back(struct relay *relay, struct session *session, const struct modes_fix *fix)
{
	struct error err;
	char what[MODE_TEXT_MAX];
	mode_guard_describe(what, fix->config_id, fix->from);
	mode_guard_audit(relay, session, what);
	if (!fix->to[0]) {
		bar(relay, session, fix, "the agent offers nothing else");
		return false;
	}
	if (++session->guard->attempts > ATTEMPTS_MAX) {
		bar(relay, session, fix, "the agent changes back again and again");
		return false;
	}
	struct choice choice = choice_of(fix);
	if (!mode_guard_ask(relay, session, &choice, on_set_back, &err)) {
		bar(relay, session, fix, err.text);
		return false;
	}
	return true;
}

void mode_guard_was_set(
	struct session *session, const struct choice *choice, const struct call *answer)
{
	size_t count = 0;
	struct mode_guard *guard = session->guard;
	mode_guard_read_result(guard, answer);
	mode_gate_note_set(guard, choice);
	for (size_t i = guard->fix_at; i < guard->fix_count; i++) {
		const struct modes_fix *fix = &guard->fixes[i];
		bool is_other = strcmp(fix->config_id, choice->config_id) != 0 &&
		                !(choice->is_mode && !fix->config_id[0]);
		if (is_other || choice->kind == CHOICE_MODEL) {
			guard->fixes[guard->fix_at + count++] = *fix;
		}
	}
	guard->fix_count = guard->fix_at + count;
}

/* The next one that is to be asked for; after the last one a prompt that waited goes on. */
void mode_guard_set_back(struct relay *relay, struct session *session)
{
	struct mode_guard *guard = session->guard;
	do {
		guard->is_busy = true;
		if (choice_gate_send(relay, session)) {
			return;
		}
		for (; session->peer && guard->fix_at < guard->fix_count; guard->fix_at++) {
			if (try_set_back(relay, session, &guard->fixes[guard->fix_at])) {
				return;
			}
		}
		settle(guard);
	} while (mode_gate_take_news(guard));
	mode_guard_tell_unknown(relay, session);
	release_prompt(relay, session);
}
