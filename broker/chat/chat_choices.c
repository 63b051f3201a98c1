/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json_doc.h"
#include "base/text.h"
#include "broker/chat/chat_parts.h"

/* Loads earlier sessions, and chooses the mode and the model of a session. */

/* ---- earlier sessions ---- */

static void request_load(struct chat *chat)
{
	struct buf out;
	struct json_writer writer;
	client_params_begin(&writer, &out);
	json_write_member_raw(&writer, "sessionId", span_of(chat->loading));
	json_write_member(&writer, "cwd", chat->means.cwd);
	json_write_member_raw(&writer, "mcpServers", SPAN_LITERAL("[]"));
	chat->stage = chat->session_id ? STAGE_COMMAND : STAGE_STARTING;
	chat_request(chat, ASK_LOAD, "session/load", &writer);
}

void chat_resume(struct chat *chat, const char *id)
{
	struct buf out;
	struct json_writer writer;
	free(chat->loading);
	chat->loading = NULL;
	if (id[0]) {
		buf_init(&out, SIZE_MAX / 2);
		json_write_begin(&writer, &out);
		json_write_text(&writer, id);
		chat->loading = json_write_end(&writer, NULL) ? mem_strndup(buf_span(&out)) : NULL;
		buf_finish(&out);
		request_load(chat);
		return;
	}
	client_params_begin(&writer, &out);
	json_write_member(&writer, "cwd", chat->means.cwd);
	chat->stage = chat->session_id ? STAGE_COMMAND : STAGE_STARTING;
	chat_request(chat, ASK_LIST, "session/list", &writer);
}

/* Takes the latest session of this workspace; if none has a time, the first one. */
void chat_take_list(struct chat *chat, const struct message *message)
{
	struct json_doc *doc = json_doc_parse_unchecked(message_place(message, PLACE_RESULT), NULL);
	char *latest = mem_strdup("");
	json_node sessions = doc ? json_get(doc, 0, "sessions") : JSON_NODE_NONE;
	for (json_node session = doc ? json_first(doc, sessions) : JSON_NODE_NONE;
		session != JSON_NODE_NONE; session = json_next(doc, session)) {
		json_node id = json_get(doc, session, "sessionId");
		char *time = json_string(doc, json_get(doc, session, "updatedAt"));
		bool is_later = time && strcmp(time, latest) > 0;
		if (json_is(doc, id, JSON_STRING) && (!chat->loading || is_later) &&
			json_string_is(doc, json_get(doc, session, "cwd"), chat->means.cwd)) {
			free(chat->loading);
			chat->loading = mem_strndup(json_raw(doc, id));
			mem_set_text(&latest, time ? time : "");
		}
		free(time);
	}
	free(latest);
	json_doc_destroy(doc);
	if (chat->loading) {
		request_load(chat);
		return;
	}
	struct error err;
	error_set(&err, ERROR_UNAVAILABLE,
		"chat: the agent lists no earlier session of %s: name one by its id, "
		"or "
		"begin a new one without --resume",
		chat->means.cwd);
	if (chat->session_id) {
		chat_print_line(chat, SHOW_BAD, "!", err.text);
	} else {
		chat_fail(chat, &err);
	}
}

void chat_take_load(struct chat *chat, const struct message *message)
{
	char *id = chat->loading;
	chat->loading = NULL;
	chat_begin_session(chat, id, message);
}

/* ---- modes and models ---- */

/* Agents offer modes and models as lists of their own, or as options of the configuration. */
static const struct choice {
	const char *what;
	const char *list;    // path of the list in the result that began the session
	const char *id;      // member of an entry
	const char *current; // path of the id of the chosen entry
	const char *method;
	const char *member; // of the params: the chosen id
} choices[CHOICE_KINDS] = {
	{"mode", "modes.availableModes", "id", "modes.currentModeId", "session/set_mode", "modeId"},
	{"model", "models.availableModels", "modelId", "models.currentModelId", "session/set_model",
		"modelId"},
};

struct found {
	const struct choice *choice;
	json_node list;   // JSON_NODE_NONE: there is nothing to choose
	json_node option; // the option that has this list; JSON_NODE_NONE: no option has it
	const char *id;   // member of an entry
};

static bool is_option_of(const struct json_doc *doc, json_node option, const char *what)
{
	return json_string_is(doc, json_get(doc, option, "category"), what) ||
	       json_string_is(doc, json_get(doc, option, "id"), what);
}

static struct found find(const struct json_doc *doc, const char *what)
{
	struct found found = {.choice = &choices[0], .option = JSON_NODE_NONE};
	while (strcmp(found.choice->what, what) != 0) {
		found.choice++;
	}
	found.list = json_path(doc, 0, found.choice->list);
	found.id = found.choice->id;
	json_node options = json_get(doc, 0, "configOptions");
	for (json_node option = json_first(doc, options); option != JSON_NODE_NONE;
		option = json_next(doc, option)) {
		if (is_option_of(doc, option, what)) {
			found.option = option;
			found.list = json_get(doc, option, "options");
			found.id = "value";
		}
	}
	return found;
}

/*
 * The id of the current entry, owned by the caller: the last one chosen, else the one that the
 * session began with. May be NULL.
 */
static char *find_current(
	const struct chat *chat, const struct json_doc *doc, const struct found *found)
{
	const char *chosen = chat->current[found->choice - choices];
	json_node began = found->option != JSON_NODE_NONE
	                          ? json_get(doc, found->option, "currentValue")
	                          : json_path(doc, 0, found->choice->current);
	return chosen ? mem_strdup(chosen) : json_string(doc, began);
}

static void print_entries(struct chat *chat, const struct json_doc *doc, const struct found *found)
{
	char *current = find_current(chat, doc, found);
	for (json_node entry = json_first(doc, found->list); entry != JSON_NODE_NONE;
		entry = json_next(doc, entry)) {
		char line[2 * TEXT_SHORT_SIZE];
		char short_id[TEXT_SHORT_SIZE];
		char short_name[TEXT_SHORT_SIZE];
		char *id = json_string(doc, json_get(doc, entry, found->id));
		char *name = json_string(doc, json_get(doc, entry, "name"));
		text_format(line, sizeof(line), "%s  %s", text_short(short_id, id ? id : ""),
			text_short(short_name, name ? name : ""));
		bool is_current = current && id && strcmp(current, id) == 0;
		chat_print_line(
			chat, is_current ? SHOW_GOOD : SHOW_PLAIN, is_current ? "*" : " ", line);
		free(id);
		free(name);
	}
	free(current);
}

static json_node find_entry(
	const struct json_doc *doc, const struct found *found, const char *typed)
{
	for (json_node entry = json_first(doc, found->list); entry != JSON_NODE_NONE;
		entry = json_next(doc, entry)) {
		json_node id = json_get(doc, entry, found->id);
		if (json_is(doc, id, JSON_STRING) &&
			(json_string_is(doc, id, typed) ||
				json_string_is(doc, json_get(doc, entry, "name"), typed))) {
			return id;
		}
	}
	return JSON_NODE_NONE;
}

static void request_choice(
	struct chat *chat, const struct json_doc *doc, const struct found *found, json_node id)
{
	struct buf out;
	struct json_writer writer;
	bool is_option = found->option != JSON_NODE_NONE;
	client_params_begin(&writer, &out);
	json_write_member_raw(&writer, "sessionId", span_of(chat->session_id));
	if (is_option) {
		json_write_member_raw(
			&writer, "configId", json_raw(doc, json_get(doc, found->option, "id")));
	}
	json_write_member_raw(
		&writer, is_option ? "value" : found->choice->member, json_raw(doc, id));
	chat->stage = STAGE_COMMAND;
	free(chat->choosing);
	chat->choosing = json_string(doc, id);
	chat->choosing_kind = (size_t)(found->choice - choices);
	chat_request(chat, ASK_CHOICE,
		is_option ? "session/set_config_option" : found->choice->method, &writer);
}

void chat_choose(struct chat *chat, const char *what, struct span rest)
{
	char line[TEXT_SHORT_SIZE];
	struct json_doc *doc = json_doc_parse_unchecked(span_of(chat->choices), NULL);
	struct found found = {.list = JSON_NODE_NONE};
	if (doc) {
		found = find(doc, what);
	}
	char *typed = mem_strndup(span_take_word(&rest, " \t\r\n"));
	if (!doc || json_count(doc, found.list) == 0) {
		text_format(line, sizeof(line), "the agent has no %s to choose", what);
		chat_print_line(chat, SHOW_BAD, "!", line);
	} else if (!typed[0]) {
		print_entries(chat, doc, &found);
	} else {
		json_node id = find_entry(doc, &found, typed);
		if (id != JSON_NODE_NONE) {
			request_choice(chat, doc, &found, id);
		} else {
			text_format(line, sizeof(line), "the agent has no such %s; it has", what);
			chat_print_line(chat, SHOW_BAD, "!", line);
			print_entries(chat, doc, &found);
		}
	}
	free(typed);
	json_doc_destroy(doc);
}

void chat_take_choice(struct chat *chat, const struct message *message)
{
	char line[2 * TEXT_SHORT_SIZE];
	char id[TEXT_SHORT_SIZE];
	size_t kind = chat->choosing_kind;
	free(chat->current[kind]);
	chat->current[kind] = mem_strdup_or_null(chat->choosing);
	text_format(line, sizeof(line), "%s: %s", choices[kind].what,
		text_short(id, chat->choosing ? chat->choosing : ""));
	chat_print_line(chat, SHOW_DIM, "-", line);
}

/* Some agents change their mode by themselves, after a plan for example. */
static void note_options(struct chat *chat, const struct json_doc *doc, json_node options)
{
	for (json_node option = json_first(doc, options); option != JSON_NODE_NONE;
		option = json_next(doc, option)) {
		for (size_t i = 0; i < CHOICE_KINDS; i++) {
			json_node value = json_get(doc, option, "currentValue");
			if (is_option_of(doc, option, choices[i].what) &&
				json_is(doc, value, JSON_STRING)) {
				free(chat->current[i]);
				chat->current[i] = json_string(doc, value);
			}
		}
	}
}

void chat_note_choice(struct chat *chat, struct span params)
{
	struct json_doc *doc = json_doc_parse_unchecked(params, NULL);
	json_node update = doc ? json_get(doc, 0, "update") : JSON_NODE_NONE;
	json_node mode = doc ? json_get(doc, update, "currentModeId") : JSON_NODE_NONE;
	json_node kind = doc ? json_get(doc, update, "sessionUpdate") : JSON_NODE_NONE;
	if (doc && json_string_is(doc, kind, "current_mode_update") &&
		json_is(doc, mode, JSON_STRING)) {
		free(chat->current[0]);
		chat->current[0] = json_string(doc, mode);
	} else if (doc && json_string_is(doc, kind, "config_option_update")) {
		note_options(chat, doc, json_get(doc, update, "configOptions"));
	}
	json_doc_destroy(doc);
}

void chat_forget_choices(struct chat *chat)
{
	for (size_t i = 0; i < CHOICE_KINDS; i++) {
		free(chat->current[i]);
		chat->current[i] = NULL;
	}
	free(chat->choosing);
	chat->choosing = NULL;
}
