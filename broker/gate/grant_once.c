/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_once.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/json_names.h"
#include "base/markdown.h"
#include "base/utf8.h"
#include "broker/gate/grant_question.h"
#include "broker/policy/policy_rule.h"

/*
 * One action, one question: if the user has allowed an action in the agent's own question, the mode
 * does not ask about it again when the agent then does exactly that, once, in that turn. The agent
 * writes every word of its question, so only what the question shows counts: the command as a
 * separate text, the new text of a file as a diff. Other members (rawInput, locations) do not
 * count, because an editor need not show them.
 */

enum {
	QUESTION_MAX = 1 << 20, // bytes of a tool call; a longer one allows nothing
	TITLE_MAX = 512,        // bytes of a title; editors are assumed to show as much in full
	SHOWN_MAX = 256 * 1024, // bytes of any other text, as in the broker's own questions
};

const char grant_once_rule[] = "allowed in the agent's own question";

/* ---- what a question shows ---- */

/* Whether a text has the same meaning as Markdown and as plain text, with nothing hidden. */
static bool is_bare(const char *text)
{
	struct span rest = span_of(text);
	while (rest.len > 0 && !utf8_is_hidden(rest)) {
		size_t len = utf8_char_length(rest);
		rest = (struct span){rest.data + len, rest.len - len};
	}
	return rest.len == 0 && !strpbrk(text, "<>[]`\\*_~&#$|");
}

/* Whether it is a fenced block of exactly the command, as base/markdown.h writes one. */
static bool is_block_of(const char *text, struct span command)
{
	static const char *const infos[] = {"", "sh", "bash", "shell", "console"};
	struct buf block;
	bool is_it = false;
	size_t ticks = strspn(text, "`");
	size_t info = strcspn(text + ticks, "\n");
	buf_init(&block, SIZE_MAX / 2);
	markdown_block(&block, command);
	for (size_t i = 0; i < ARRAY_LENGTH(infos); i++) {
		is_it = is_it || span_is((struct span){text + ticks, info}, infos[i]);
	}
	is_it = is_it && ticks < block.len && memcmp(text, block.data, ticks) == 0 &&
	        span_is((struct span){block.data + ticks, block.len - ticks}, text + ticks + info);
	buf_finish(&block);
	return is_it;
}

static bool is_code_of(const char *text, struct span command)
{
	struct buf code;
	buf_init(&code, SIZE_MAX / 2);
	markdown_code(&code, command, command.len);
	bool is_it = span_is(buf_span(&code), text);
	buf_finish(&code);
	return is_it && !memchr(command.data, '\n', command.len) &&
	       !memchr(command.data, '\t', command.len);
}

/* Whether a text is exactly the command. */
static bool is_text_of(const char *text, const char *command, size_t most)
{
	return text && strlen(text) <= most &&
	       (is_code_of(text, span_of(command)) || is_block_of(text, span_of(command)) ||
		       (is_bare(command) && strcmp(text, command) == 0));
}

/* The content array, if every reader finds the same one; else JSON_NODE_NONE. */
static json_node read_content(const struct json_doc *call)
{
	static const char *const known[] = {"type", "content", "text", "path", "oldText", "newText",
		"terminalId", "annotations", "_meta", NULL};
	static const char *const opaque[] = {"_meta", NULL};
	const struct json_name_rules rules = {.known = known, .opaque = opaque};
	struct error err;
	json_node content = json_get(call, 0, "content");
	return json_is(call, content, JSON_ARRAY) &&
	                       json_names_check(json_raw(call, content), &rules, &err)
	               ? content
	               : JSON_NODE_NONE;
}

/* Whether the command is the title, or the whole text below it. */
static bool shows_command(const struct json_doc *call, const struct subject *tool)
{
	json_node content = read_content(call);
	json_node block = json_get(call, json_first(call, content), "content");
	char *command = grant_command_shown(tool);
	char *title = json_string(call, json_get(call, 0, "title"));
	char *text = json_count(call, content) == 1 &&
	                             json_string_is(call, json_get(call, block, "type"), "text")
	                     ? json_string(call, json_get(call, block, "text"))
	                     : NULL;
	bool shows = is_text_of(title, command, TITLE_MAX) || is_text_of(text, command, SHOWN_MAX);
	free(text);
	free(title);
	free(command);
	return shows;
}

/* ---- what a yes to it allows ---- */

static size_t count_hits(const struct message *message, enum place place)
{
	size_t count = 0;
	for (size_t i = 0; i < json_check_hit_count(message->check); i++) {
		count += json_check_hits(message->check)[i].place == (uint32_t)place ? 1 : 0;
	}
	return count;
}

static bool is_kind(const struct subject *tool, const char *kind)
{
	return tool->kind && strcmp(tool->kind, kind) == 0;
}

static void add(struct subject ***list, size_t *count, const struct subject *subject)
{
	*list = mem_realloc(*list, (*count + 2) * sizeof(**list));
	(*list)[(*count)++] = subject_copy(subject);
	(*list)[*count] = NULL;
}

/* A command without a directory runs in the session's own. */
static bool is_default(const char *cwd, const struct session *session)
{
	return !cwd || (session->roots && session->roots[0] && strcmp(cwd, session->roots[0]) == 0);
}

static bool is_empty(struct span raw)
{
	struct json_doc *doc = raw.len > 0 ? json_doc_parse_unchecked(raw, NULL) : NULL;
	bool is_none =
		raw.len == 0 ||
		(doc && (json_is(doc, 0, JSON_NULL) ||
				((json_is(doc, 0, JSON_ARRAY) || json_is(doc, 0, JSON_OBJECT)) &&
					json_count(doc, 0) == 0)));
	json_doc_destroy(doc);
	return is_none;
}

/*
 * If a command names another directory or variables, it is not certain that the user has seen them.
 */
static bool has_usual_surroundings(const struct message *message, const struct session *session)
{
	struct span cwd = message_place(message, PLACE_TOOL_CALL_CWD);
	if (count_hits(message, PLACE_TOOL_CALL_ENV) > 1 ||
		count_hits(message, PLACE_TOOL_CALL_CWD) > 1 ||
		!is_empty(message_place(message, PLACE_TOOL_CALL_ENV))) {
		return false;
	}
	struct json_doc *doc = cwd.len > 0 ? json_doc_parse_unchecked(cwd, NULL) : NULL;
	char *path = doc ? json_string(doc, 0) : NULL;
	bool is_usual = cwd.len == 0 || span_is(cwd, "null") || (path && is_default(path, session));
	free(path);
	json_doc_destroy(doc);
	return is_usual;
}

/*
 * Adds a diff of a file in the session's directories, under exactly the name that will be written.
 */
static void add_write(struct subject ***list, size_t *count, const struct subject *tool,
	const struct session *session, const struct json_doc *call, json_node item)
{
	char *path = json_string(call, json_get(call, item, "path"));
	char *text = json_string(call, json_get(call, item, "newText"));
	json_node old_node = json_get(call, item, "oldText");
	char *old_text = json_string(call, old_node);
	bool is_read = old_text ? strlen(old_text) <= SHOWN_MAX
	                        : old_node == JSON_NODE_NONE || json_is(call, old_node, JSON_NULL);
	char *paths[] = {path, NULL};
	const struct subject write = {.operation = POLICY_WRITE,
		.paths = paths,
		.new_text = text,
		.old_text = old_text,
		.is_resolved = tool->is_resolved};
	const struct policy_query query =
		subject_query(&write, (const char *const *)session->roots);
	bool is_file = false;
	for (char **known = tool->paths; path && known && *known; known++) {
		is_file = is_file || strcmp(*known, path) == 0;
	}
	if (json_string_is(call, json_get(call, item, "type"), "diff") && is_file && is_read &&
		text && strlen(text) <= SHOWN_MAX && policy_is_inside_roots(&query)) {
		add(list, count, &write);
	}
	free(old_text);
	free(text);
	free(path);
}

struct subject **grant_once_read(
	const struct message *message, const struct subject *tool, const struct session *session)
{
	struct subject **list = NULL;
	size_t count = 0;
	struct span raw = message_place(message, PLACE_TOOL_CALL);
	struct json_doc *call =
		raw.len > 0 && raw.len <= QUESTION_MAX ? json_doc_parse_unchecked(raw, NULL) : NULL;
	if (!call || tool->unknown || !session) {
		json_doc_destroy(call);
		return NULL;
	}
	json_node content = read_content(call);
	for (json_node item = json_first(call, content);
		item != JSON_NODE_NONE && (!tool->kind || is_kind(tool, "edit")) &&
		count < MEMORY_ONCE_MAX;
		item = json_next(call, item)) {
		add_write(&list, &count, tool, session, call, item);
	}
	if (tool->command && (!tool->kind || is_kind(tool, "execute")) &&
		has_usual_surroundings(message, session) && shows_command(call, tool)) {
		const struct subject run = {.operation = POLICY_TERMINAL,
			.command = tool->command,
			.shell_line = tool->shell_line};
		add(&list, &count, &run);
	}
	json_doc_destroy(call);
	return list;
}

void grant_once_add(struct session *session, struct subject *const *list)
{
	for (; list && *list && session->prompts > 0; list++) {
		if (memory_has_room(session->memory, *list)) {
			memory_add_once(session->memory, *list);
		}
	}
}

void grant_once_free(struct subject **list)
{
	for (size_t i = 0; list && list[i]; i++) {
		subject_destroy(list[i]);
	}
	free(list);
}

/* The new text of a write; NULL if it is longer than what is shown, or not text. */
static char *read_new_text(const struct message *message)
{
	struct span raw = message_place(message, PLACE_CONTENT);
	struct json_doc *doc = raw.len > 0 && raw.len / 6 <= SHOWN_MAX
	                               ? json_doc_parse_unchecked(raw, NULL)
	                               : NULL;
	char *text = doc ? json_string(doc, 0) : NULL;
	json_doc_destroy(doc);
	return text;
}

void grant_once_decide(struct session *session, const struct message *message,
	const struct subject *subject, struct grant_decision *decision, char **out_old_text)
{
	bool is_write = subject->operation == POLICY_WRITE;
	if (!session || session->prompts == 0 || decision->source != GRANT_BY_MODE ||
		decision->verdict.decision != POLICY_PENDING || !memory_has_once(session->memory)) {
		return;
	}
	struct subject wanted = *subject;
	wanted.cwd = is_default(subject->cwd, session) ? NULL : subject->cwd;
	wanted.new_text = is_write ? read_new_text(message) : NULL;
	if ((!is_write || wanted.new_text) &&
		memory_take_once(session->memory, &wanted, out_old_text) && !*out_old_text) {
		decision->verdict.decision = POLICY_ALLOW_ONCE;
		decision->verdict.rule = grant_once_rule;
		decision->source = GRANT_BY_QUESTION;
	}
	free(wanted.new_text);
}
