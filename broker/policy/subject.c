/* SPDX-License-Identifier: MIT */
#include "broker/policy/subject.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/policy/subject_env.h"

enum { SUBJECT_WORDS_MAX = 4096 }; // paths, or words of a command, that policy checks

bool subject_operation(const char *name, enum policy_operation *out_operation)
{
	static const char *const words[POLICY_OPERATION_COUNT] = {
		[POLICY_READ] = "read",
		[POLICY_WRITE] = "write",
		[POLICY_TERMINAL] = "terminal",
		[POLICY_GRANT] = "grant",
	};
	for (int i = 0; i < POLICY_OPERATION_COUNT; i++) {
		if (strcmp(words[i], name) == 0 ||
			strcmp(policy_operation_name((enum policy_operation)i), name) == 0) {
			*out_operation = (enum policy_operation)i;
			return true;
		}
	}
	return false;
}

/* ---- word lists ---- */

static bool add_word(char ***list, char *word, struct error *err)
{
	size_t count = 0;
	while (*list && (*list)[count]) {
		count++;
	}
	if (count >= SUBJECT_WORDS_MAX) {
		free(word);
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"more than %d paths or words in one request", SUBJECT_WORDS_MAX);
	}
	*list = mem_realloc(*list, (count + 2) * sizeof(**list));
	(*list)[count] = word;
	(*list)[count + 1] = NULL;
	return true;
}

/* Adds a node that must be a string to a list. */
static bool add_string(const struct json_doc *doc, json_node node, char ***list, const char *what,
	struct error *err)
{
	char *text = json_string(doc, node);
	if (!text) {
		return error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS",
			"%s is not a string, or holds a NUL", what);
	}
	return add_word(list, text, err);
}

/* ---- the methods ---- */

static bool read_place(const struct message *message, enum place place, const char *what,
	char ***list, struct error *err)
{
	struct span raw = message_place(message, place);
	if (raw.len == 0) {
		return error_set_reason(
			err, ERROR_PROTOCOL, "INVALID_PARAMS", "%s is missing", what);
	}
	struct json_doc *doc = json_doc_parse_unchecked(raw, err);
	bool ok = doc && add_string(doc, 0, list, what, err);
	json_doc_destroy(doc);
	return ok;
}

static bool read_args(struct subject *subject, const struct message *message, struct error *err)
{
	struct span raw = message_place(message, PLACE_ARGS);
	subject->shell_line = true;
	if (raw.len == 0 || span_is(raw, "null")) {
		return true;
	}
	struct json_doc *doc = json_doc_parse_unchecked(raw, err);
	if (!doc) {
		return error_prefix(err, "params.args");
	}
	bool ok = json_is(doc, 0, JSON_ARRAY) ||
	          error_set_reason(
			  err, ERROR_PROTOCOL, "INVALID_PARAMS", "params.args is not an array");
	for (json_node arg = json_first(doc, 0); ok && arg != JSON_NODE_NONE;
		arg = json_next(doc, arg)) {
		subject->shell_line = false;
		ok = add_string(doc, arg, &subject->command, "params.args", err);
	}
	json_doc_destroy(doc);
	return ok;
}

/* Reads the directory of a command, and the variables that are added for it. */
static bool read_surroundings(
	struct subject *subject, const struct message *message, struct error *err)
{
	struct span cwd = message_place(message, PLACE_CWD);
	subject_set_env(subject, message_place(message, PLACE_ENV));
	if (cwd.len == 0 || span_is(cwd, "null")) {
		return true;
	}
	struct json_doc *doc = json_doc_parse_unchecked(cwd, err);
	subject->cwd = doc ? json_string(doc, 0) : NULL;
	json_doc_destroy(doc);
	return subject->cwd || error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS",
				       "params.cwd is not a string, or holds a NUL");
}

/* ---- a tool call ---- */

/* The only value of a place; if there are several, the agent's reader might take any of them. */
static struct span only_place(
	struct subject *subject, const struct message *message, enum place place, unsigned unknown)
{
	const struct json_hit *hits = json_check_hits(message->check);
	size_t count = 0;
	for (size_t i = 0; i < json_check_hit_count(message->check); i++) {
		count += hits[i].place == place ? 1 : 0;
	}
	if (count > 1) {
		subject->unknown |= unknown;
		return (struct span){NULL, 0};
	}
	return message_place(message, place);
}

static bool read_words(struct subject *subject, const struct json_doc *doc)
{
	struct error err;
	subject->shell_line = json_is(doc, 0, JSON_STRING);
	if (subject->shell_line) {
		return add_string(doc, 0, &subject->command, "rawInput.command", &err);
	}
	bool ok = true;
	for (json_node word = json_first(doc, 0); ok && word != JSON_NODE_NONE;
		word = json_next(doc, word)) {
		ok = add_string(doc, word, &subject->command, "rawInput.command", &err);
	}
	return ok;
}

/* rawInput.command, if the agent gives it: a shell line, or words. */
static void read_tool_command(struct subject *subject, const struct message *message)
{
	struct span raw =
		only_place(subject, message, PLACE_TOOL_CALL_COMMAND, POLICY_UNKNOWN_COMMAND);
	if (raw.len == 0 || raw.data[0] == 'n') { // null
		return;
	}
	bool is_command = raw.data[0] == '"' || raw.data[0] == '[';
	struct json_doc *doc = is_command ? json_doc_parse_unchecked(raw, NULL) : NULL;
	if (!doc || !read_words(subject, doc)) {
		subject->unknown |= POLICY_UNKNOWN_COMMAND;
	}
	json_doc_destroy(doc);
}

static char *text_of(struct span raw)
{
	struct json_doc *doc = json_doc_parse_unchecked(raw, NULL);
	char *text = doc ? json_string(doc, 0) : NULL;
	json_doc_destroy(doc);
	return text;
}

static void read_tool_paths(
	struct subject *subject, const struct message *message, enum place place)
{
	const struct json_hit *hits = json_check_hits(message->check);
	struct error err;
	for (size_t i = 0; i < json_check_hit_count(message->check); i++) {
		if (hits[i].place != place) {
			continue;
		}
		char *path = text_of((struct span){
			message->text.data + hits[i].start, hits[i].end - hits[i].start});
		if (!path || !add_word(&subject->paths, path, &err)) {
			subject->unknown |= POLICY_UNKNOWN_PATHS;
			break;
		}
	}
}

/*
 * Reads only the places that policy needs, because the rest of a tool call may have any form and
 * size.
 */
void subject_read_tool_call(struct subject *subject, const struct message *message)
{
	*subject = (struct subject){.operation = POLICY_GRANT};
	struct span call = message_place(message, PLACE_TOOL_CALL);
	if (call.len == 0 || call.data[0] != '{') {
		subject->unknown = POLICY_UNKNOWN_ALL;
		return;
	}
	struct span kind = only_place(subject, message, PLACE_TOOL_CALL_KIND, POLICY_UNKNOWN_KIND);
	subject->kind = kind.len > 0 ? text_of(kind) : NULL;
	if (!subject->kind && kind.len > 0 && kind.data[0] != 'n') { // null
		subject->unknown |= POLICY_UNKNOWN_KIND;
	}
	read_tool_command(subject, message);
	read_tool_paths(subject, message, PLACE_TOOL_CALL_LOCATION);
	read_tool_paths(subject, message, PLACE_TOOL_CALL_DIFF);
}

bool subject_read(struct subject *subject, enum policy_operation operation,
	const struct message *message, struct error *err)
{
	*subject = (struct subject){.operation = operation};
	bool ok = true;
	switch (operation) {
	case POLICY_READ:
	case POLICY_WRITE:
		ok = read_place(message, PLACE_PATH, "params.path", &subject->paths, err);
		break;
	case POLICY_TERMINAL:
		ok = read_place(message, PLACE_COMMAND, "params.command", &subject->command, err) &&
		     read_args(subject, message, err) && read_surroundings(subject, message, err);
		break;
	default:
		subject_read_tool_call(subject, message);
		break;
	}
	if (!ok) {
		subject_finish(subject);
		subject->unknown = POLICY_UNKNOWN_ALL;
	}
	return ok;
}

/* ---- the params of _broker/policy/explain ---- */

static bool read_optional(struct json_doc *doc, const char *name, char ***list, struct error *err)
{
	json_node node = json_get(doc, 0, name);
	return node == JSON_NODE_NONE || json_is(doc, node, JSON_NULL) ||
	       add_string(doc, node, list, name, err);
}

static bool read_optional_text(
	struct json_doc *doc, const char *name, char **out_text, struct error *err)
{
	char **words = NULL;
	bool ok = read_optional(doc, name, &words, err);
	*out_text = words ? words[0] : NULL;
	free(words);
	return ok;
}

static bool read_command_params(struct subject *subject, struct json_doc *doc, struct error *err)
{
	json_node env = json_get(doc, 0, "env");
	bool ok = read_optional(doc, "command", &subject->command, err);
	subject->shell_line = true;
	for (json_node arg = json_first(doc, json_get(doc, 0, "args"));
		ok && subject->command && arg != JSON_NODE_NONE; arg = json_next(doc, arg)) {
		subject->shell_line = false;
		ok = add_string(doc, arg, &subject->command, "args", err);
	}
	if (ok && json_count(doc, env) > 0) {
		subject_set_env(subject, json_raw(doc, env));
	}
	return ok && read_optional_text(doc, "cwd", &subject->cwd, err);
}

/* The members that the operation requires. */
static bool check_params(const struct subject *subject, struct error *err)
{
	bool is_file = subject->operation == POLICY_READ || subject->operation == POLICY_WRITE;
	if (is_file && !subject->paths) {
		return error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS", "path is missing");
	}
	return subject->operation != POLICY_TERMINAL || subject->command ||
	       error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS", "command is missing");
}

bool subject_read_params(struct subject *subject, enum policy_operation operation,
	struct span params, struct error *err)
{
	*subject = (struct subject){.operation = operation};
	struct json_doc *doc = json_doc_parse_unchecked(params, err);
	if (!doc) {
		return error_prefix(err, "params");
	}
	bool ok = true;
	if (operation != POLICY_TERMINAL) {
		ok = read_optional(doc, "path", &subject->paths, err);
	}
	if (operation == POLICY_TERMINAL || operation == POLICY_GRANT) {
		ok = ok && read_command_params(subject, doc, err);
	}
	if (operation == POLICY_GRANT) {
		ok = ok && read_optional_text(doc, "toolKind", &subject->kind, err);
	}
	ok = ok && check_params(subject, err);
	json_doc_destroy(doc);
	if (!ok) {
		subject_finish(subject);
	}
	return ok;
}

/* ---- copying and comparing ---- */

char **subject_words_copy(char *const *words)
{
	size_t count = 0;
	while (words && words[count]) {
		count++;
	}
	char **copy = words ? mem_alloc_zero((count + 1) * sizeof(*copy)) : NULL;
	for (size_t i = 0; i < count; i++) {
		copy[i] = mem_strdup(words[i]);
	}
	return copy;
}

struct subject *subject_copy(const struct subject *subject)
{
	struct subject *copy = mem_alloc(sizeof(*copy));
	*copy = *subject;
	copy->paths = subject_words_copy(subject->paths);
	copy->asked = subject_words_copy(subject->asked);
	copy->command = subject_words_copy(subject->command);
	copy->cwd = subject->cwd ? mem_strdup(subject->cwd) : NULL;
	copy->env = subject->env ? mem_strdup(subject->env) : NULL;
	copy->variables = subject_words_copy(subject->variables);
	copy->kind = subject->kind ? mem_strdup(subject->kind) : NULL;
	copy->new_text = mem_strdup_or_null(subject->new_text);
	copy->old_text = mem_strdup_or_null(subject->old_text);
	return copy;
}

void subject_destroy(struct subject *subject)
{
	if (subject) {
		subject_finish(subject);
		free(subject);
	}
}

void subject_set_paths(struct subject *subject, char *const *paths)
{
	words_free(subject->asked);
	subject->asked = subject->paths;
	subject->paths = subject_words_copy(paths);
	subject->is_resolved = true;
}

static bool texts_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool words_equal(char *const *a, char *const *b)
{
	if (!a || !b) {
		return a == b;
	}
	while (*a && *b && strcmp(*a, *b) == 0) {
		a++;
		b++;
	}
	return *a == *b;
}

bool subject_equals(const struct subject *a, const struct subject *b)
{
	return !a->unknown && !b->unknown && a->operation == b->operation &&
	       a->shell_line == b->shell_line && words_equal(a->paths, b->paths) &&
	       words_equal(a->command, b->command) && texts_equal(a->cwd, b->cwd) &&
	       texts_equal(a->env, b->env) && texts_equal(a->kind, b->kind) &&
	       texts_equal(a->new_text, b->new_text);
}

void subject_finish(struct subject *subject)
{
	words_free(subject->paths);
	words_free(subject->asked);
	words_free(subject->command);
	free(subject->cwd);
	free(subject->env);
	words_free(subject->variables);
	free(subject->kind);
	free(subject->new_text);
	free(subject->old_text);
	*subject = (struct subject){.operation = subject->operation};
}

struct policy_query subject_query(const struct subject *subject, const char *const *roots)
{
	return (struct policy_query){
		.operation = subject->operation,
		.roots = roots,
		.paths = (const char *const *)subject->paths,
		.command = (const char *const *)subject->command,
		.shell_line = subject->shell_line,
		.variables = (const char *const *)subject->variables,
		.tool_kind = subject->kind,
		.unknown = subject->unknown,
	};
}

const char *subject_text(const struct subject *subject, char *text, size_t size)
{
	if (!subject->command) {
		return subject->paths ? subject->paths[0] : "";
	}
	bool is_whole = true;
	text[0] = '\0';
	for (size_t i = 0; subject->command[i] && is_whole; i++) {
		is_whole = text_append(text, size, "%s%s", i > 0 ? " " : "", subject->command[i]);
	}
	return text;
}

char *subject_text_create(const struct subject *subject)
{
	size_t size = 1;
	for (size_t i = 0; subject->command && subject->command[i]; i++) {
		size += strlen(subject->command[i]) + 1;
	}
	if (!subject->command) {
		return mem_strdup(subject->paths ? subject->paths[0] : "");
	}
	char *text = mem_alloc(size);
	subject_text(subject, text, size);
	return text;
}
