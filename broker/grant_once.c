/* SPDX-License-Identifier: MIT */
#include "broker/grant_relay.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"

/*
 * One action, one question: what the person has allowed in a question of the agent's own is not
 * asked about again by the mode when the agent then does it - exactly that, once, in that turn.
 */

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

/* The session's own directory is what a command without one runs in. */
static char *without_default(char *cwd, const struct session *session)
{
	return cwd && session->roots && session->roots[0] && strcmp(cwd, session->roots[0]) == 0
	               ? NULL
	               : cwd;
}

/* False where the person was shown something that a request cannot be compared with. */
static bool read_surroundings(const struct message *message, char **out_cwd)
{
	struct span env = message_place(message, PLACE_TOOL_CALL_ENV);
	struct span cwd = message_place(message, PLACE_TOOL_CALL_CWD);
	if (count_hits(message, PLACE_TOOL_CALL_ENV) > 1 ||
		count_hits(message, PLACE_TOOL_CALL_CWD) > 1 ||
		(env.len > 0 && !span_is(env, "null") && !span_is(env, "[]") &&
			!span_is(env, "{}"))) {
		return false;
	}
	if (cwd.len == 0 || span_is(cwd, "null")) {
		return true;
	}
	struct json_doc *doc = json_doc_parse_unchecked(cwd, NULL);
	*out_cwd = doc ? json_string(doc, 0) : NULL;
	json_doc_destroy(doc);
	return *out_cwd != NULL;
}

/* An edit names what it writes in its locations; of a call without a kind only a diff says so. */
static bool is_edit(const struct subject *tool, const struct message *message)
{
	return is_kind(tool, "edit") ||
	       (!tool->kind && count_hits(message, PLACE_TOOL_CALL_LOCATION) == 0);
}

struct subject **grant_once_read(
	const struct message *message, const struct subject *tool, const struct session *session)
{
	struct subject **list = NULL;
	size_t count = 0;
	char *cwd = NULL;
	if (tool->unknown || !session) {
		return NULL;
	}
	for (char **path = tool->paths;
		path && *path && is_edit(tool, message) && count < MEMORY_ONCE_MAX; path++) {
		char *paths[] = {*path, NULL};
		const struct subject write = {.operation = POLICY_WRITE,
			.paths = paths,
			.is_resolved = tool->is_resolved};
		add(&list, &count, &write);
	}
	if (tool->command && (!tool->kind || is_kind(tool, "execute")) &&
		read_surroundings(message, &cwd)) {
		const struct subject run = {.operation = POLICY_TERMINAL,
			.command = tool->command,
			.shell_line = tool->shell_line,
			.cwd = without_default(cwd, session)};
		add(&list, &count, &run);
	}
	free(cwd);
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

void grant_once_decide(
	struct session *session, const struct subject *subject, struct grant_decision *decision)
{
	if (!session || session->prompts == 0 || decision->source != GRANT_BY_MODE ||
		decision->verdict.decision != POLICY_PENDING) {
		return;
	}
	struct subject wanted = *subject;
	wanted.cwd = without_default(subject->cwd, session);
	if (memory_take_once(session->memory, &wanted)) {
		decision->verdict.decision = POLICY_ALLOW_ONCE;
		decision->verdict.rule = "allowed in the agent's own question";
		decision->source = GRANT_BY_QUESTION;
	}
}
