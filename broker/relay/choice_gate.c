/* SPDX-License-Identifier: MIT */
#include "broker/relay/choice_gate.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "base/text.h"
#include "broker/relay/mode_guard.h"
#include "broker/relay/relay_sync.h"
#include "broker/session/answer.h"
#include "broker/session/notice.h"
#include "broker/session/session_update.h"

enum { PARAMS_MAX = 64 * 1024 }; // bytes; longer params from the editor are not remembered

/* ---- the editor's choices ---- */

static void remember_params(
	struct request *request, const struct session *session, const struct call *call)
{
	struct span params = message_place(&call->message, PLACE_PARAMS);
	if (!session || params.len > PARAMS_MAX) {
		return;
	}
	request->session_id = mem_strdup(session->id);
	buf_clear(&request->message);
	if (!buf_append(&request->message, params, NULL)) {
		buf_clear(&request->message);
	}
}

static void describe(char text[MODE_TEXT_MAX], const struct choice *choice)
{
	if (choice->kind == CHOICE_MODEL) {
		text_format(text, MODE_TEXT_MAX, "model \"%s\"", choice->value);
	} else {
		mode_guard_describe(text, choice->config_id, choice->value);
	}
}

/* The answer may contain all present options. */
static void follow_answer(
	struct session *session, const struct choice *choice, const struct call *answer)
{
	struct json_doc *doc =
		json_doc_parse_unchecked(message_place(&answer->message, PLACE_RESULT), NULL);
	if (doc) {
		choices_follow_options(&session->choices, doc, json_get(doc, 0, "configOptions"),
			choice->config_id);
	}
	json_doc_destroy(doc);
}

static void remember(struct relay *relay, struct session *session, const struct request *request,
	const struct call *answer)
{
	struct choice choice;
	struct span params = buf_span(&request->message);
	struct json_doc *doc = params.len > 0 ? json_doc_parse_unchecked(params, NULL) : NULL;
	bool is_kept = doc && choice_read(request->method->name, doc, &choice) &&
	               choices_put(&session->choices, &choice);
	json_doc_destroy(doc);
	if (!is_kept) {
		log_warning("session %s: the broker cannot remember the choice made by %s, so a "
			    "restarted agent will not get it",
			session->id, request->method->name);
		return;
	}
	follow_answer(session, &choice, answer);
	relay_sync_note_choices(relay, session);
}

/* The option's category as the agent last reported it; "" for an unknown session. */
static void category_of(
	const struct session *session, const char *config_id, char category[MODES_NAME_MAX])
{
	struct json_doc *doc = mode_guard_options(session);
	category[0] = '\0';
	if (doc) {
		modes_category(doc, 0, config_id, category, MODES_NAME_MAX);
	}
	json_doc_destroy(doc);
}

/*
 * Reads what the editor wants to change: an option, or, with config_id "", the mode. Reads only the
 * members that the agent reads for the method.
 */
static bool read_choice(
	const struct json_doc *doc, bool is_option, struct choice *out_choice, struct error *err)
{
	*out_choice = (struct choice){.kind = is_option ? CHOICE_OPTION : CHOICE_MODE};
	json_node value = json_get(doc, 0, is_option ? "value" : "modeId");
	char *id = is_option ? json_string(doc, json_get(doc, 0, "configId")) : NULL;
	char *text = json_string(doc, value);
	bool is_on = is_option && json_bool(doc, value, false);
	const char *wanted = text ? text : is_on ? "true" : "";
	bool fits = strlen(wanted) < MODES_NAME_MAX && (!id || strlen(id) < MODES_NAME_MAX);
	text_whole(out_choice->config_id, MODES_NAME_MAX, "%s", id ? id : "");
	text_whole(out_choice->value, MODES_NAME_MAX, "%s", wanted);
	free(id);
	free(text);
	return fits || error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS",
			       "a name of more than %d bytes", MODES_NAME_MAX - 1);
}

/* Whether the agent asks less with this choice, as far as the session's options are known. */
static bool asks_less(
	struct relay *relay, const struct session *session, const struct choice *choice)
{
	char category[MODES_NAME_MAX];
	const char *agent = mode_guard_agent(relay, session);
	if (choice->kind != CHOICE_OPTION) {
		return choice->kind == CHOICE_MODE && modes_ask_less(agent, choice->value);
	}
	category_of(session, choice->config_id, category);
	return modes_option_asks_less(agent, choice->config_id, category, choice->value);
}

bool choice_gate_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	char what[MODE_TEXT_MAX];
	struct choice choice;
	const char *rule = mode_guard_rule(relay);
	struct session *session = relay_session_of(relay, &call->message);
	remember_params(request, session, call);
	if (!rule || call->method->means == MEANS_SET_MODEL) {
		return true;
	}
	bool is_option = call->method->means == MEANS_SET_OPTION;
	struct json_doc *doc =
		json_doc_parse_unchecked(message_place(&call->message, PLACE_PARAMS), err);
	if (!doc) {
		return error_prefix(err, "%s", call->message.method);
	}
	bool is_read = read_choice(doc, is_option, &choice, err);
	json_doc_destroy(doc);
	if (!is_read) {
		return error_prefix(err, "%s", call->message.method);
	}
	if (!asks_less(relay, session, &choice)) {
		return true;
	}
	mode_guard_describe(what, choice.config_id, choice.value);
	mode_guard_audit(relay, session, what);
	return error_set_reason(err, ERROR_DENIED, "PERMISSION_DENIED",
		"%s: with %s the agent would not ask about everything: refused by policy (%s); "
		"set agent-modes = allow in the policy to allow it",
		call->message.method, what, rule);
}

bool choice_gate_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	struct choice choice;
	char category[MODES_NAME_MAX];
	struct span params = buf_span(&request->message);
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (!session || params.len == 0) {
		return true;
	}
	remember(relay, session, request, call);
	bool is_gated = mode_guard_rule(relay) && request->method->means != MEANS_SET_MODEL;
	struct json_doc *doc = is_gated ? json_doc_parse_unchecked(params, NULL) : NULL;
	bool is_option = request->method->means == MEANS_SET_OPTION;
	if (doc && read_choice(doc, is_option, &choice, err)) {
		category_of(session, choice.config_id, category);
		choice.is_mode = strcmp(category, "mode") == 0;
		mode_guard_note_choice(relay, session, &choice, call);
	}
	json_doc_destroy(doc);
	return true;
}

/* ---- the agent's changes ---- */

/* A change that policy forbids is set back, and not remembered. */
static bool update_asks_less(struct relay *relay, const struct session *session,
	const struct json_doc *doc, json_node update)
{
	struct modes_fix fixes[MODES_FIXES_MAX];
	const char *agent = mode_guard_agent(relay, session);
	char *mode = json_string(doc, json_get(doc, update, "currentModeId"));
	bool is_less = mode_guard_rule(relay) && ((mode && modes_ask_less(agent, mode)) ||
							 modes_find(agent, doc, update, fixes) > 0);
	free(mode);
	return is_less;
}

void choice_gate_follow(
	struct relay *relay, struct session *session, bool is_mode, const struct call *call)
{
	struct choices *choices = &session->choices;
	struct span params = message_place(&call->message, PLACE_PARAMS);
	struct json_doc *doc = choices->count > 0 ? json_doc_parse_unchecked(params, NULL) : NULL;
	json_node update = doc ? json_get(doc, 0, "update") : JSON_NODE_NONE;
	if (!doc || update_asks_less(relay, session, doc, update)) {
		json_doc_destroy(doc);
		return;
	}
	char *mode = is_mode ? json_string(doc, json_get(doc, update, "currentModeId")) : NULL;
	bool has_changed = mode && choices_follow_mode(choices, mode);
	has_changed = has_changed || choices_follow_options(choices, doc,
					     json_get(doc, update, "configOptions"), NULL);
	if (has_changed) {
		relay_sync_note_choices(relay, session);
	}
	free(mode);
	json_doc_destroy(doc);
}

/* ---- after a restart of the agent ---- */

/* Whether the agent has listed its options, and this is not among them. */
static bool is_gone(const struct session *session, const struct choice *choice)
{
	struct json_doc *doc = choice->kind == CHOICE_OPTION ? mode_guard_options(session) : NULL;
	bool is_gone = doc != NULL;
	for (json_node option = doc ? json_first(doc, 0) : JSON_NODE_NONE; option != JSON_NODE_NONE;
		option = json_next(doc, option)) {
		is_gone = is_gone &&
		          !json_string_is(doc, json_get(doc, option, "id"), choice->config_id);
	}
	json_doc_destroy(doc);
	return is_gone;
}

void choice_gate_show(struct relay *relay, const struct session *session,
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

/*
 * The next prompt reports it. A choice that the agent no longer offers is dropped, because it could
 * never be made again.
 */
static void refuse(struct relay *relay, struct session *session, struct choice *choice,
	const char *why, char *detail)
{
	char what[MODE_TEXT_MAX];
	char text[ERROR_TEXT_MAX];
	bool was_last = is_gone(session, choice);
	describe(what, choice);
	text_format(text, sizeof(text),
		"the agent was restarted, and %s, which was chosen in this session, could not be "
		"set again: %s; the prompt was not sent: %s",
		what, why,
		was_last ? "the agent no longer offers it, so it is forgotten; prompt again"
			 : "choose it or another value again, then prompt again");
	/* The reason goes only to the editor, because it is in the agent's own words. */
	log_warning("session %s: the agent was restarted, and %s could not be set again: the "
		    "next prompt fails with CHOICE_REFUSED",
		session->id, what);
	free(session->choices.refusal);
	free(session->choices.refused);
	session->choices.refusal = mem_strdup(text);
	session->choices.refused = detail;
	if (was_last) {
		choices_drop(&session->choices, choice);
		relay_sync_note_choices(relay, session);
	}
}

static void on_answer(struct relay *relay, struct request *request, const struct call *answer,
	const struct error *failure)
{
	char why[FAILURE_SAID_MAX];
	unsigned serial;
	struct session *session = mode_guard_take_answer(relay, request, failure);
	if (!session) {
		return;
	}
	memcpy(&serial, buf_span(&request->message).data, sizeof(serial));
	struct choice *choice = choices_of_serial(&session->choices, serial);
	if (choice && answer && !answer->message.is_error) {
		choice->is_stale = false;
		follow_answer(session, choice, answer);
		mode_guard_was_set(session, choice, answer);
		choice_gate_show(relay, session, choice, answer);
	} else if (choice && answer) {
		struct span error = message_place(&answer->message, PLACE_ERROR);
		char *detail = failure_read_error(error, why);
		refuse(relay, session, choice, why, detail);
	} else if (choice) {
		refuse(relay, session, choice, failure->text, NULL);
	}
	mode_guard_set_back(relay, session);
}

/* The policy may have changed since the choice was made. */
static bool policy_admits(
	struct relay *relay, const struct session *session, const struct choice *choice)
{
	char what[MODE_TEXT_MAX];
	char text[2 * MODE_TEXT_MAX];
	const char *rule = mode_guard_rule(relay);
	if (!rule || choice->kind == CHOICE_MODEL || !asks_less(relay, session, choice)) {
		return true;
	}
	describe(what, choice);
	mode_guard_audit(relay, session, what);
	text_format(text, sizeof(text),
		"the agent is not set to %s again, which was chosen earlier in this session: "
		"refused by policy (%s)",
		what, rule);
	notice_send(relay, session, text, true);
	return false;
}

bool choice_gate_send(struct relay *relay, struct session *session)
{
	struct error err;
	struct choice *choice;
	struct choices *choices = &session->choices;
	while (session->peer && !choices->refusal && (choice = choices_first_stale(choices))) {
		if (!policy_admits(relay, session, choice)) {
			choices_drop(choices, choice);
			relay_sync_note_choices(relay, session);
			continue;
		}
		struct request *request = mode_guard_ask(relay, session, choice, on_answer, &err);
		if (!request) {
			refuse(relay, session, choice, err.text, NULL);
			break;
		}
		struct span serial = {(const char *)&choice->serial, sizeof(choice->serial)};
		bool is_kept = buf_append(&request->message, serial, NULL);
		(void)is_kept; // the buffer is empty and has room
		return true;
	}
	return false;
}

bool choice_gate_fails(struct relay *relay, struct session *session, const struct call *call)
{
	struct choices *choices = &session->choices;
	if (!choices->refusal) {
		return false;
	}
	char *refusal = choices->refusal;
	char *refused = choices->refused;
	choices->refusal = NULL;
	choices->refused = NULL;
	struct error err;
	failure_set(&err, "CHOICE_REFUSED", "session", "%s", refusal);
	err.detail = refused ? span_of(refused) : (struct span){NULL, 0};
	relay_fail(relay, call->message.id, &err);
	free(refusal);
	free(refused);
	return true;
}
