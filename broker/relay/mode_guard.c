/* SPDX-License-Identifier: MIT */
#include "broker/relay/mode_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "broker/relay/choice_gate.h"
#include "broker/relay/relay_end.h"
#include "broker/relay/relay_mcp_exec.h"
#include "broker/relay/relay_order.h"
#include "broker/session/answer.h"
#include "broker/session/notice.h"
#include "broker/session/session_update.h"
#include "broker/session/unanswered.h"

enum {
	ATTEMPTS_MAX =
		5, // then the broker stops setting back an agent that changes again and again
	OPTIONS_MAX = 256 * 1024, // bytes of configOptions that are noted
};

/* What the agent has reported and nobody has looked at yet: the last update of each kind. */
struct news {
	char *mode;    // owned; params of current_mode_update, JSON; may be NULL
	char *options; // owned; the same for config_option_update
};

struct mode_guard {
	struct modes_fix fixes[MODES_FIXES_MAX]; // to set back, one after the other
	size_t fix_count;
	size_t fix_at;     // the one in flight
	char agent[64];    // peer.agent_name
	bool told_unknown; // the user was told that its mode is unknown
	bool is_modeless;  // it has reported neither modes nor options
	bool is_busy; // a request for a set-back, or for a choice of the editor's, is in flight
	const struct request *asked; // that request: answers to others are stale; or NULL
	struct news news;            // reported while a request is in flight
	bool barred_by_option;       // barred because of an option, not of the mode
	char mode[MODES_NAME_MAX];   // the last one in which the agent asks; "": unknown
	char *options;               // owned; the agent's configOptions, JSON; may be NULL
	char *barred; // owned; why the session takes no prompt; NULL: it takes prompts
	int attempts; // set-backs so far
};

static void news_clear(struct news *news)
{
	free(news->mode);
	free(news->options);
	*news = (struct news){NULL, NULL};
}

static void finish_news(void *part, void *request)
{
	news_clear(part);
}

/*
 * What an agent reports about a session before it answers the request that opens it: a part of that
 * request.
 */
static const struct part_type news_type = {.size = sizeof(struct news), .finish = finish_news};

/* The session's guard; created if missing. */
static struct mode_guard *mode_guard_of(struct session *session)
{
	if (!session->guard) {
		session->guard = mem_alloc_zero(sizeof(*session->guard));
	}
	if (session->peer) {
		text_whole(session->guard->agent, sizeof(session->guard->agent), "%s",
			session->peer->agent_name);
	}
	return session->guard;
}

void mode_guard_destroy(struct mode_guard *guard)
{
	if (!guard) {
		return;
	}
	news_clear(&guard->news);
	free(guard->options);
	free(guard->barred);
	free(guard);
}

const char *mode_guard_agent(struct relay *relay, const struct session *session)
{
	const struct peer *peer =
		session && session->peer ? session->peer : relay_running_peer(relay);
	return session && session->guard ? session->guard->agent : peer ? peer->agent_name : "";
}

const char *mode_guard_rule(const struct relay *relay)
{
	struct policy_verdict verdict = policy_decide_agent_modes(relay->config.profile->policy);
	return verdict.decision == POLICY_REJECT_ONCE ? verdict.rule : NULL;
}

void mode_guard_describe(char text[MODE_TEXT_MAX], const char *config_id, const char *value)
{
	if (config_id[0]) {
		text_format(text, MODE_TEXT_MAX, "%s = \"%s\"", config_id, value);
	} else {
		text_format(text, MODE_TEXT_MAX, "mode \"%s\"", value);
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

/* ---- reading the agent's modes ---- */

static struct json_doc *parse(const char *text)
{
	return text ? json_doc_parse_unchecked(span_of(text), NULL) : NULL;
}

struct json_doc *mode_guard_options(const struct session *session)
{
	return session && session->guard ? parse(session->guard->options) : NULL;
}

static void note_options(struct mode_guard *guard, const struct json_doc *doc, json_node object)
{
	json_node options = json_get(doc, object, "configOptions");
	struct span raw = options != JSON_NODE_NONE ? json_raw(doc, options) : SPAN_LITERAL("");
	if (raw.len > 0 && raw.len <= OPTIONS_MAX) {
		free(guard->options);
		guard->options = mem_strndup(raw);
	}
}

/*
 * Notes a mode. Whether it is one in which the agent asks; then it becomes the one to go back to.
 */
static bool note_mode(struct mode_guard *guard, const struct json_doc *doc, json_node node)
{
	char *mode = json_string(doc, node);
	bool asks = mode && !modes_ask_less(guard->agent, mode);
	if (asks && strlen(mode) < sizeof(guard->mode)) {
		memcpy(guard->mode, mode, strlen(mode) + 1);
	}
	free(mode);
	return asks;
}

/* The mode, or an option, is again one in which the agent asks: prompts are taken. */
static void unbar(struct mode_guard *guard, bool by_option)
{
	if (guard->barred && guard->barred_by_option == by_option) {
		free(guard->barred);
		guard->barred = NULL;
	}
}

/* A change was acknowledged. If the answer lists the options, it lists all present values. */
static void note_choice(
	struct mode_guard *guard, const struct choice *choice, const struct call *answer)
{
	struct json_doc *doc =
		json_doc_parse_unchecked(message_place(&answer->message, PLACE_RESULT), NULL);
	if (doc) {
		note_options(guard, doc, 0);
	}
	json_doc_destroy(doc);
	if (choice->kind == CHOICE_MODE) {
		memcpy(guard->mode, choice->value, sizeof(guard->mode));
	}
	if (choice->kind != CHOICE_MODEL) {
		unbar(guard, choice->kind == CHOICE_OPTION);
	}
	if (choice->is_mode) {
		unbar(guard, false);
	}
}

/* Finds what an update reports that must be set back; at most MODES_FIXES_MAX. */
static size_t find_told(const struct mode_guard *guard, const struct json_doc *doc, bool is_mode,
	struct modes_fix *out_fixes)
{
	json_node update = json_get(doc, 0, "update");
	if (!is_mode) {
		return modes_find(guard->agent, doc, update, out_fixes);
	}
	char *mode = json_string(doc, json_get(doc, update, "currentModeId"));
	bool is_less = mode && modes_ask_less(guard->agent, mode);
	if (is_less) {
		*out_fixes = (struct modes_fix){.is_boolean = false};
		text_format(out_fixes->from, sizeof(out_fixes->from), "%s", mode);
		memcpy(out_fixes->to, guard->mode, sizeof(out_fixes->to));
	}
	free(mode);
	return is_less ? 1 : 0;
}

static void take_options(struct mode_guard *guard)
{
	struct json_doc *doc = parse(guard->news.options);
	if (doc) {
		note_options(guard, doc, json_get(doc, 0, "update"));
		guard->fix_count = find_told(guard, doc, false, guard->fixes);
		if (guard->fix_count == 0) {
			unbar(guard, true);
		}
	}
	json_doc_destroy(doc);
}

static void take_mode(struct mode_guard *guard)
{
	struct modes_fix fix;
	struct json_doc *doc = parse(guard->news.mode);
	if (doc && find_told(guard, doc, true, &fix) > 0) {
		bool has_room = guard->fix_count < MODES_FIXES_MAX;
		guard->fixes[has_room ? guard->fix_count++ : MODES_FIXES_MAX - 1] = fix;
	} else if (doc && note_mode(guard, doc, json_path(doc, 0, "update.currentModeId"))) {
		unbar(guard, false);
	}
	json_doc_destroy(doc);
}

/* Reads what the agent has reported meanwhile. True if some of it must be set back. */
static bool take_news(struct mode_guard *guard)
{
	guard->fix_at = 0;
	guard->fix_count = 0;
	take_options(guard);
	take_mode(guard);
	news_clear(&guard->news);
	return guard->fix_count > 0;
}

/* Whether the news say that the agent is again in what it was just set back from. */
static bool is_back_in(const struct mode_guard *guard, const struct modes_fix *fix)
{
	struct modes_fix found[MODES_FIXES_MAX];
	bool is_mode = !fix->config_id[0];
	bool is_in = false;
	struct json_doc *doc = parse(is_mode ? guard->news.mode : guard->news.options);
	size_t count = doc ? find_told(guard, doc, is_mode, found) : 0;
	for (size_t i = 0; i < count; i++) {
		is_in = is_in || strcmp(found[i].config_id, fix->config_id) == 0;
	}
	json_doc_destroy(doc);
	return is_in;
}

/* ---- unknown modes ---- */

/* Copies the name of an unknown mode, or "" if the agent reports no modes. */
static bool find_unknown(const struct session *session, char out_mode[MODES_NAME_MAX])
{
	const struct mode_guard *guard = session->guard;
	struct json_doc *doc = mode_guard_options(session);
	bool is_found = doc && modes_find_unknown(guard->agent, doc, 0, out_mode);
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

/* Tells the user, once, that the agent's mode is unknown. */
static void tell_unknown(struct relay *relay, struct session *session)
{
	char mode[MODES_NAME_MAX];
	char what[MODE_TEXT_MAX];
	char text[2 * MODE_TEXT_MAX];
	struct mode_guard *guard = session->guard;
	const char *rule = mode_guard_rule(relay);
	if (!rule || !guard || guard->told_unknown || !find_unknown(session, mode)) {
		return;
	}
	guard->told_unknown = true;
	if (mode[0]) {
		text_format(what, sizeof(what), "works in mode \"%s\", which", mode);
	} else {
		snprintf(what, sizeof(what), "reports no modes, and");
	}
	text_format(text, sizeof(text),
		"the agent \"%s\" %s acp-broker does not know: it may act without asking, and "
		"policy (%s) decides only about what it asks. Choose a mode in which it asks, or "
		"set agent-modes = allow in the policy to allow it without this note",
		guard->agent, what, rule);
	notice_send(relay, session, text, false);
}

void mode_guard_note_choice(struct relay *relay, struct session *session,
	const struct choice *choice, const struct call *answer)
{
	note_choice(mode_guard_of(session), choice, answer);
	tell_unknown(relay, session);
}

/* ---- a session that takes no prompt ---- */

static void bar(
	struct relay *relay, struct session *session, const struct modes_fix *fix, const char *why)
{
	struct mode_guard *guard = session->guard;
	char what[MODE_TEXT_MAX];
	char text[2 * MODE_TEXT_MAX];
	mode_guard_describe(what, fix->config_id, fix->from);
	text_format(text, sizeof(text),
		"the agent works with %s, in which it does not ask about everything: refused by "
		"policy (%s), and %s. Choose another mode, or set agent-modes = allow in the "
		"policy",
		what, mode_guard_rule(relay), why);
	mem_set_text(&guard->barred, text);
	guard->barred_by_option = fix->config_id[0] != '\0';
	notice_send(relay, session, text, true);
	if (session->prompts > 0 && session->peer) {
		relay_mcp_exec_cancel(relay, session->id);
		relay_cancel_prompt(relay, session);
	}
}

bool mode_guard_admits(const struct session *session, struct error *err)
{
	return !session->guard || !session->guard->barred ||
	       error_set_reason(err, ERROR_DENIED, "PERMISSION_DENIED", "session/prompt: %s",
		       session->guard->barred);
}

/* ---- waiting prompts ---- */

static struct waiting *prompt_of(const struct relay *relay, const struct session *session)
{
	return desk_first(&relay->desk, (struct desk_pick){STAGE_MODE, NULL, session->id});
}

bool mode_guard_holds(struct relay *relay, const struct call *call)
{
	struct session *session = relay_session_of(relay, &call->message);
	bool is_busy = session && mode_guard_is_busy(session);
	if (!session || (!is_busy && choice_gate_fails(relay, session, call))) {
		return session != NULL;
	}
	if (!is_busy && !choices_first_stale(&session->choices)) {
		return false;
	}
	if (prompt_of(relay, session)) {
		struct error err;
		relay_fail(relay, call->message.id,
			failure_set(&err, "RESOURCE_LIMIT_EXCEEDED", "session",
				"another prompt is already waiting until the agent has changed its "
				"mode"));
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

bool mode_guard_has_prompt(const struct relay *relay, const struct session *session)
{
	return prompt_of(relay, session) != NULL;
}

bool mode_guard_is_busy(const struct session *session)
{
	return session->guard && session->guard->is_busy;
}

/* Not while the session is being reopened: the answer to that says which mode it is in. */
static void release_prompt(struct relay *relay, const struct session *session)
{
	struct call call;
	bool may_go = !relay_order_is_opening(relay, session);
	struct waiting *waiting = may_go ? prompt_of(relay, session) : NULL;
	if (waiting && relay->is_ending) {
		desk_fail(waiting, &relay_is_ending);
	} else if (waiting) {
		if (desk_open(waiting, &call)) {
			relay->ops->on_editor_call(relay, &call);
			relay_order_look(relay);
		}
		desk_drop(waiting);
	}
}

void mode_guard_release(struct relay *relay, struct session *session)
{
	if (session->guard && !session->guard->is_busy) {
		release_prompt(relay, session);
	}
}

void mode_guard_cancel(struct relay *relay, const struct session *session)
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

/* The choice that a set-back makes. */
static struct choice choice_of(const struct modes_fix *fix)
{
	struct choice choice = {.kind = fix->config_id[0] ? CHOICE_OPTION : CHOICE_MODE,
		.is_boolean = fix->is_boolean};
	text_whole(choice.config_id, sizeof(choice.config_id), "%s", fix->config_id);
	text_whole(choice.value, sizeof(choice.value), "%s", fix->to);
	return choice;
}

static void was_set_back(struct relay *relay, struct session *session, const struct modes_fix *fix,
	const struct call *answer)
{
	char from[MODE_TEXT_MAX];
	char text[2 * MODE_TEXT_MAX];
	mode_guard_describe(from, fix->config_id, fix->from);
	text_format(text, sizeof(text),
		"the agent was set back from %s to \"%s\": policy (%s) does not allow a mode that "
		"asks less",
		from, fix->to, mode_guard_rule(relay));
	struct choice choice = choice_of(fix);
	choice_gate_show(relay, session, &choice, answer);
	notice_send(relay, session, text, false);
}

struct session *mode_guard_take_answer(
	struct relay *relay, struct request *request, const struct error *failure)
{
	struct session *session = session_find(&relay->sessions, request->session_id);
	if (!session || !session->guard || session->guard->asked != request) {
		return NULL; // closed or reopened meanwhile
	}
	session->guard->asked = NULL;
	if (!session->peer) { // the agent has ended; a restored session is read anew
		settle(session->guard);
		news_clear(&session->guard->news);
		desk_fail_all(
			&relay->desk, (struct desk_pick){STAGE_MODE, NULL, session->id}, failure);
		return NULL;
	}
	return session;
}

static void on_set_back(struct relay *relay, struct request *request, const struct call *answer,
	const struct error *failure)
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
		if (!is_back_in(session->guard, fix)) {
			was_set_back(relay, session, fix, answer);
		}
	} else {
		bar(relay, session, fix,
			failure ? failure->text : "the agent refuses to change it");
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
	if (!choice_write_request(
		    choice, request->pending.id, session->agent_id, &relay->scratch, err)) {
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

/* Begins one set-back; false if it cannot be tried, and the session is barred. */
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
	note_choice(guard, choice, answer);
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

/* Asks for the next change. After the last one, a waiting prompt goes on. */
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
	} while (take_news(guard));
	tell_unknown(relay, session);
	release_prompt(relay, session);
}

/* ---- opening a session ---- */

/* Reads the mode and options from the answer that opens a session. */
static void read_answer(struct mode_guard *guard, const struct json_doc *doc)
{
	news_clear(&guard->news);
	free(guard->barred);
	guard->barred = NULL;
	guard->attempts = 0;
	guard->is_busy = false;
	guard->asked = NULL;
	note_options(guard, doc, 0);
	note_mode(guard, doc, json_path(doc, 0, "modes.currentModeId"));
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

void mode_guard_read(struct relay *relay, struct session *session, struct request *request,
	const struct call *call)
{
	struct span result = message_place(&call->message, PLACE_RESULT);
	struct news *told = parts_find(&request->parts, &news_type);
	bool is_object = result.len > 0 && result.data[0] == '{';
	bool has_rule = mode_guard_rule(relay) != NULL;
	if ((!has_rule && !choices_first_stale(&session->choices)) ||
		(!is_object && !told && !has_rule)) {
		return;
	}
	struct json_doc *doc = is_object ? json_doc_parse_unchecked(result, NULL) : NULL;
	if (is_object && !doc) {
		log_warning("session %s: it has too many modes to check", session->id);
	}
	bool has_modes = doc && json_get(doc, 0, "modes") != JSON_NODE_NONE;
	bool has_options = doc && json_get(doc, 0, "configOptions") != JSON_NODE_NONE;
	struct mode_guard *guard = mode_guard_of(session);
	guard->is_modeless = !has_modes && !has_options;
	if (!has_rule && has_options) {
		note_options(guard, doc, 0); // without a policy nothing is set back
	} else if (has_rule && (has_modes || has_options)) {
		read_answer(guard, doc);
	}
	if (told) {
		take_told(&told->mode, &guard->news.mode, has_modes);
		take_told(&told->options, &guard->news.options, has_options);
	}
	json_doc_destroy(doc);
}

void mode_guard_opened(struct relay *relay, struct request *request)
{
	struct session *session =
		request->session_id ? session_find(&relay->sessions, request->session_id) : NULL;
	if (session && choices_first_stale(&session->choices)) {
		mode_guard_of(session);
	}
	if (session && session->peer && session->guard && !session->guard->is_busy) {
		mode_guard_set_back(relay, session); // a waiting prompt goes on
	}
}

/* The request that is opening the session of this message, or NULL. */
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

static void note_news(struct news *news, bool is_mode, const struct call *call)
{
	struct span params = message_place(&call->message, PLACE_PARAMS);
	char **noted = is_mode ? &news->mode : &news->options;
	if (params.len <= OPTIONS_MAX) {
		free(*noted);
		*noted = mem_strndup(params);
	}
}

void mode_guard_on_update(struct peer *peer, const struct call *call)
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
		note_news(&mode_guard_of(session)->news, is_mode, call);
		if (!session->guard->is_busy) {
			mode_guard_set_back(relay, session);
		}
	} else if (opening) {
		note_news(parts_get(&opening->parts, &news_type), is_mode, call);
	}
}
