/* SPDX-License-Identifier: MIT */
#include "broker/relay/mode_gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "broker/relay/choice_gate.h"
#include "broker/relay/mode_guard.h"

enum { OPTIONS_MAX = 256 * 1024 }; // bytes of configOptions that are kept

/* ---- what the agent says it is in ---- */

static void keep_options(struct mode_guard *guard, const struct json_doc *doc, json_node object)
{
	json_node options = json_get(doc, object, "configOptions");
	struct span raw = options != JSON_NODE_NONE ? json_raw(doc, options) : SPAN_LITERAL("");
	if (raw.len > 0 && raw.len <= OPTIONS_MAX) {
		free(guard->options);
		guard->options = mem_strndup(raw);
	}
}

static void keep_mode(struct mode_guard *guard, const struct json_doc *doc, json_node node)
{
	char *mode = json_string(doc, node);
	if (mode && strlen(mode) < sizeof(guard->mode) && !modes_ask_less(guard->agent, mode)) {
		memcpy(guard->mode, mode, strlen(mode) + 1);
	}
	free(mode);
}

void mode_guard_keep_options(struct mode_guard *guard, const struct json_doc *doc)
{
	keep_options(guard, doc, 0);
}

void mode_news_clear(struct mode_news *news)
{
	free(news->mode);
	free(news->options);
	*news = (struct mode_news){NULL, NULL};
}

static void finish_news(void *part, void *request)
{
	mode_news_clear(part);
}

/* What is told of a session before the request that opens it is answered: a part of that. */
static const struct part_type news_type = {.size = sizeof(struct mode_news), .finish = finish_news};

/* The answer that opens a session says what it is in. */
static void read_answer(struct mode_guard *guard, const struct json_doc *doc)
{
	mode_news_clear(&guard->news);
	free(guard->barred);
	guard->barred = NULL;
	guard->attempts = 0;
	guard->is_busy = false;
	guard->asked = NULL;
	mode_guard_keep_options(guard, doc);
	keep_mode(guard, doc, json_path(doc, 0, "modes.currentModeId"));
	guard->fix_at = 0;
	guard->fix_count = modes_find(guard->agent, doc, 0, guard->fixes);
}

static void take_told(char **told, char **news, bool is_answered)
{
	if (*told && !is_answered) {
		free(*news);
		*news = *told;
		*told = NULL;
	}
}

void mode_gate_read(struct relay *relay, struct session *session, struct request *request,
	const struct call *call)
{
	struct span result = message_place(&call->message, PLACE_RESULT);
	struct mode_news *told = parts_find(&request->parts, &news_type);
	bool is_object = result.len > 0 && result.data[0] == '{';
	bool has_rule = mode_guard_rule(relay) != NULL;
	if ((!has_rule && !choices_first_stale(&session->choices)) ||
		(!is_object && !told && !has_rule)) {
		return;
	}
	struct json_doc *doc = is_object ? json_doc_parse_unchecked(result, NULL) : NULL;
	if (is_object && !doc) {
		log_warning("session %s: its modes are too many to be looked at", session->id);
	}
	bool has_modes = doc && json_get(doc, 0, "modes") != JSON_NODE_NONE;
	bool has_options = doc && json_get(doc, 0, "configOptions") != JSON_NODE_NONE;
	struct mode_guard *guard = mode_guard_of(session);
	guard->is_modeless = !has_modes && !has_options;
	if (!has_rule && has_options) {
		mode_guard_keep_options(guard, doc); // without a policy nothing is set back
	} else if (has_rule && (has_modes || has_options)) {
		read_answer(guard, doc);
	}
	if (told) {
		take_told(&told->mode, &guard->news.mode, has_modes);
		take_told(&told->options, &guard->news.options, has_options);
	}
	json_doc_destroy(doc);
}

void mode_gate_opened(struct relay *relay, struct request *request)
{
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (session && choices_first_stale(&session->choices)) {
		mode_guard_of(session);
	}
	if (session && session->peer && session->guard && !session->guard->is_busy) {
		mode_guard_set_back(relay, session); // a prompt that has waited goes on
	}
}

static void read_mode_update(struct mode_guard *guard, const struct json_doc *doc, json_node update)
{
	json_node node = json_get(doc, update, "currentModeId");
	char *mode = json_string(doc, node);
	if (mode && modes_ask_less(guard->agent, mode)) {
		bool has_room = guard->fix_count < MODES_FIXES_MAX;
		struct modes_fix *fix =
			&guard->fixes[has_room ? guard->fix_count++ : MODES_FIXES_MAX - 1];
		*fix = (struct modes_fix){.is_boolean = false};
		snprintf(fix->from, sizeof(fix->from), "%s", mode);
		memcpy(fix->to, guard->mode, sizeof(fix->to));
	} else if (mode) {
		keep_mode(guard, doc, node);
		mode_guard_unbar(guard, false);
	}
	free(mode);
}

static void read_option_update(
	struct mode_guard *guard, const struct json_doc *doc, json_node update)
{
	keep_options(guard, doc, update);
	guard->fix_count = modes_find(guard->agent, doc, update, guard->fixes);
	if (guard->fix_count == 0) {
		mode_guard_unbar(guard, true);
	}
}

static void read_update(struct mode_guard *guard, const char *params,
	void (*read)(struct mode_guard *guard, const struct json_doc *doc, json_node update))
{
	struct json_doc *doc = params ? json_doc_parse_unchecked(span_of(params), NULL) : NULL;
	if (doc) {
		read(guard, doc, json_get(doc, 0, "update"));
	}
	json_doc_destroy(doc);
}

bool mode_gate_take_news(struct mode_guard *guard)
{
	guard->fix_at = 0;
	guard->fix_count = 0;
	read_update(guard, guard->news.options, read_option_update);
	read_update(guard, guard->news.mode, read_mode_update);
	mode_news_clear(&guard->news);
	return guard->fix_count > 0;
}

bool mode_gate_is_back_in(const struct mode_guard *guard, const struct modes_fix *fix)
{
	struct modes_fix found[MODES_FIXES_MAX];
	bool is_mode = !fix->config_id[0];
	const char *params = is_mode ? guard->news.mode : guard->news.options;
	struct json_doc *doc = params ? json_doc_parse_unchecked(span_of(params), NULL) : NULL;
	json_node update = doc ? json_get(doc, 0, "update") : JSON_NODE_NONE;
	char *mode =
		doc && is_mode ? json_string(doc, json_get(doc, update, "currentModeId")) : NULL;
	bool is_in = mode && modes_ask_less(guard->agent, mode);
	size_t count = doc && !is_mode ? modes_find(guard->agent, doc, update, found) : 0;
	for (size_t i = 0; i < count; i++) {
		is_in = is_in || strcmp(found[i].config_id, fix->config_id) == 0;
	}
	free(mode);
	json_doc_destroy(doc);
	return is_in;
}

/* The request that opens the session which the agent tells of already; NULL: there is none. */
static struct request *opening_of(struct peer *peer, const struct message *message)
{
	char id[MESSAGE_SESSION_ID_MAX + 1];
	if (!message_string(message, PLACE_SESSION_ID, id, sizeof(id))) {
		return NULL;
	}
	LIST_FOR_EACH(pending, &peer->asked.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		const char *name = request->session_id;
		const struct session *session =
			name ? session_find(&peer->relay->sessions, name) : NULL;
		name = session ? session->agent_id : name;
		if (name && request->method && request->method->opens_session &&
			strcmp(name, id) == 0) {
			return request;
		}
	}
	return NULL;
}

static void keep_news(struct mode_news *news, bool is_mode, const struct call *call)
{
	struct span params = message_place(&call->message, PLACE_PARAMS);
	char **kept = is_mode ? &news->mode : &news->options;
	if (params.len <= OPTIONS_MAX) {
		free(*kept);
		*kept = mem_strndup(params);
	}
}

void mode_gate_on_update(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	char kind[sizeof("config_option_update")];
	if (!message_string(&call->message, PLACE_UPDATE_KIND, kind, sizeof(kind))) {
		return;
	}
	bool is_mode = strcmp(kind, "current_mode_update") == 0;
	if (!is_mode && strcmp(kind, "config_option_update") != 0) {
		return;
	}
	struct session *session = relay_session_of_agent(peer, &call->message);
	if (session) {
		choice_gate_follow(relay, session, is_mode, call);
	}
	if (!mode_guard_rule(relay)) {
		return;
	}
	struct request *opening = session ? NULL : opening_of(peer, &call->message);
	if (session) {
		keep_news(&mode_guard_of(session)->news, is_mode, call);
		if (!session->guard->is_busy) {
			mode_guard_set_back(relay, session);
		}
	} else if (opening) {
		keep_news(parts_get(&opening->parts, &news_type), is_mode, call);
	}
}

/* ---- what the editor wants ---- */

/* The option's category as the agent last told it; of a session that is not known it has none. */
static void category_of(
	const struct session *session, const char *config_id, char category[MODES_NAME_MAX])
{
	const char *options = session && session->guard ? session->guard->options : NULL;
	struct json_doc *doc = options ? json_doc_parse_unchecked(span_of(options), NULL) : NULL;
	category[0] = '\0';
	if (doc) {
		modes_category(doc, 0, config_id, category, MODES_NAME_MAX);
	}
	json_doc_destroy(doc);
}

/*
 * What the editor wants to change: an option, or with config_id "" the mode. Of
 * each method that is read alone which its agent reads.
 */
static bool read_wish(
	const struct json_doc *doc, bool is_option, struct choice *out_wish, struct error *err)
{
	*out_wish = (struct choice){.kind = is_option ? CHOICE_OPTION : CHOICE_MODE};
	json_node value = is_option ? json_get(doc, 0, "value") : JSON_NODE_NONE;
	char *mode = is_option ? NULL : json_string(doc, json_get(doc, 0, "modeId"));
	char *id = is_option ? json_string(doc, json_get(doc, 0, "configId")) : NULL;
	char *text = json_string(doc, value);
	const char *wanted = mode ? mode : text ? text : json_bool(doc, value, false) ? "true" : "";
	bool fits = strlen(wanted) < MODES_NAME_MAX && (!id || strlen(id) < MODES_NAME_MAX);
	snprintf(out_wish->config_id, MODES_NAME_MAX, "%s", id ? id : "");
	snprintf(out_wish->value, MODES_NAME_MAX, "%s", wanted);
	free(mode);
	free(id);
	free(text);
	return fits || error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS",
			       "a name of more than %d bytes", MODES_NAME_MAX - 1);
}

bool mode_guard_asks_less(
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

bool mode_gate_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	char what[MODE_TEXT_MAX];
	struct choice wish;
	const char *rule = mode_guard_rule(relay);
	struct session *session = relay_session_of(relay, &call->message);
	choice_gate_keep(request, session, call);
	if (!rule || call->method->means == MEANS_SET_MODEL) {
		return true;
	}
	bool is_option = call->method->means == MEANS_SET_OPTION;
	struct json_doc *doc =
		json_doc_parse_unchecked(message_place(&call->message, PLACE_PARAMS), err);
	if (!doc) {
		return error_prefix(err, "%s", call->message.method);
	}
	bool is_read = read_wish(doc, is_option, &wish, err);
	json_doc_destroy(doc);
	if (!is_read) {
		return error_prefix(err, "%s", call->message.method);
	}
	if (!mode_guard_asks_less(relay, session, &wish)) {
		return true;
	}
	mode_guard_describe(what, wish.config_id, wish.value);
	mode_guard_audit(relay, session, what);
	return error_set_reason(err, ERROR_DENIED, "PERMISSION_DENIED",
		"%s: with %s the agent would not ask about everything: refused by policy (%s); "
		"agent-modes = allow in the policy consents",
		call->message.method, what, rule);
}

void mode_gate_note_set(struct mode_guard *guard, const struct choice *choice)
{
	if (choice->kind == CHOICE_MODE) {
		memcpy(guard->mode, choice->value, sizeof(guard->mode));
	}
	if (choice->kind != CHOICE_MODEL) {
		mode_guard_unbar(guard, choice->kind == CHOICE_OPTION);
	}
	if (choice->is_mode) {
		mode_guard_unbar(guard, false);
	}
}

void mode_guard_read_result(struct mode_guard *guard, const struct call *call)
{
	struct json_doc *doc =
		json_doc_parse_unchecked(message_place(&call->message, PLACE_RESULT), NULL);
	if (doc) {
		mode_guard_keep_options(guard, doc);
	}
	json_doc_destroy(doc);
}

bool mode_gate_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	struct choice wish;
	char category[MODES_NAME_MAX];
	struct span params = buf_span(&request->message);
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (!session || params.len == 0) {
		return true;
	}
	choice_gate_remember(relay, session, request, call);
	bool is_gated = mode_guard_rule(relay) && request->method->means != MEANS_SET_MODEL;
	struct json_doc *doc = is_gated ? json_doc_parse_unchecked(params, NULL) : NULL;
	bool is_option = request->method->means == MEANS_SET_OPTION;
	if (doc && read_wish(doc, is_option, &wish, err)) {
		category_of(session, wish.config_id, category);
		wish.is_mode = strcmp(category, "mode") == 0;
		mode_gate_note_set(mode_guard_of(session), &wish);
		mode_guard_read_result(mode_guard_of(session), call);
		mode_guard_tell_unknown(relay, session);
	}
	json_doc_destroy(doc);
	return true;
}
