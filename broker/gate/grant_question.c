/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_question.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/markdown.h"
#include "base/shell_quote.h"
#include "base/utf8.h"
#include "broker/policy/subject_env.h"
#include "broker/session/question.h"
#include "broker/session/root_names.h"

/* The form of the broker's own questions in the editor (ACP, session/request_permission). */

enum {
	TITLE_MAX = 512,         // bytes of a path or command in a question's title
	DIFF_MAX = 256 * 1024,   // bytes of new text, as JSON spells it, that are shown
	COMMAND_MAX = 64 * 1024, // bytes of a command that are shown
};

const char grant_options_once[] =
	"[{\"optionId\":\"allow\",\"name\":\"Allow\",\"kind\":\"allow_once\"},"
	"{\"optionId\":\"reject\",\"name\":\"Reject\",\"kind\":\"reject_once\"}]";

const char grant_options_always[] =
	"[{\"optionId\":\"allow\",\"name\":\"Allow\",\"kind\":\"allow_once\"},"
	"{\"optionId\":\"allow-always\",\"name\":\"Always allow in this session\","
	"\"kind\":\"allow_always\"},"
	"{\"optionId\":\"reject\",\"name\":\"Reject\",\"kind\":\"reject_once\"},"
	"{\"optionId\":\"reject-always\",\"name\":\"Always reject in this session\","
	"\"kind\":\"reject_always\"}]";

/* How an operation is shown: the first word of the title, and the tool kind. */
static const struct {
	const char *verb;
	const char *kind;
} shown[] = {
	[POLICY_READ] = {"Read", "read"},
	[POLICY_WRITE] = {"Write", "edit"},
	[POLICY_TERMINAL] = {"Run", "execute"},
};

/* Writes the new text as a diff; the old text is inserted once it is known. */
static void write_diff(struct json_writer *writer, struct request *request, const struct call *call,
	const char *path)
{
	struct span text = message_place(&call->message, PLACE_CONTENT);
	if (text.len > DIFF_MAX) {
		char note[96];
		int len = snprintf(note, sizeof(note),
			"%zu bytes of new content: more than is shown here", text.len);
		question_write_text(writer, (struct span){note, (size_t)len});
		return;
	}
	asking_of(request)->diff_at = writer->out->len;
	json_write_object(writer);
	json_write_member(writer, "type", "diff");
	json_write_member(writer, "path", path);
	json_write_member_raw(writer, "newText",
		text.len > 0 && text.data[0] == '"' ? text : SPAN_LITERAL("\"\""));
	json_write_object_end(writer);
}

char *grant_command_shown(const struct subject *subject)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_@%+=:,./-";
	struct buf text;
	buf_init(&text, SIZE_MAX / 2);
	bool ok = true;
	for (size_t i = 0; ok && subject->command[i]; i++) {
		const char *word = subject->command[i];
		bool is_plain = subject->shell_line || (*word && !word[strspn(word, plain)]);
		char *spelled = is_plain ? mem_strdup(word) : shell_quote(word);
		ok = buf_append_format(&text, NULL, "%s%s", i > 0 ? " " : "", spelled);
		free(spelled);
	}
	char *whole = mem_strndup(buf_span(&text));
	buf_finish(&text);
	return whole;
}

/* Writes the whole command, its directory and its variables. */
static void write_command(struct json_writer *writer, const struct subject *subject)
{
	struct buf text;
	char *command = grant_command_shown(subject);
	struct span whole = span_of(command);
	struct span cut = {whole.data, whole.len < COMMAND_MAX ? whole.len : COMMAND_MAX};
	cut.len = cut.len < whole.len ? utf8_whole_length(cut) : cut.len;
	buf_init(&text, SIZE_MAX / 2);
	markdown_block(&text, cut);
	bool ok = cut.len == whole.len ||
	          buf_append_format(&text, NULL, "\n… and %zu more bytes", whole.len - cut.len);
	if (subject->cwd) {
		ok = ok && buf_append(&text, SPAN_LITERAL("\n\nin "), NULL);
		markdown_code(&text, span_of(subject->cwd), FILE_PATH_MAX);
	}
	ok = ok && subject_env_show(subject, &text);
	if (ok) {
		question_write_text(writer, buf_span(&text));
	}
	buf_finish(&text);
	free(command);
}

static void write_content(struct json_writer *writer, struct request *request,
	const struct call *call, const char *path)
{
	const struct subject *subject = question_find(request)->subject;
	if (subject->operation == POLICY_READ) {
		return;
	}
	json_write_key(writer, "content");
	json_write_array(writer);
	if (subject->operation == POLICY_WRITE) {
		write_diff(writer, request, call, path);
	} else {
		write_command(writer, subject);
	}
	json_write_array_end(writer);
}

static void write_location(struct json_writer *writer, const char *path)
{
	json_write_key(writer, "locations");
	json_write_array(writer);
	json_write_object(writer);
	json_write_member(writer, "path", path);
	json_write_object_end(writer);
	json_write_array_end(writer);
}

/* Appends "Run `make all`". */
static void append_what(struct buf *out, const struct subject *subject, const char *path)
{
	char *text = path || !subject->command ? NULL : grant_command_shown(subject);
	bool ok = buf_append_format(out, NULL, "%s ", shown[subject->operation].verb);
	assert(ok);
	markdown_code(out, span_of(path ? path : text ? text : ""), TITLE_MAX);
	free(text);
}

static void write_tool_call(struct json_writer *writer, struct request *request,
	const struct call *call, const struct question_reason *reason)
{
	const struct subject *subject = question_find(request)->subject;
	struct buf what;
	char *path = subject->paths
	                     ? relay_map_path(request->peer, PATH_TO_LOCAL, subject->paths[0])
	                     : NULL;
	buf_init(&what, SIZE_MAX / 2);
	append_what(&what, subject, path);
	json_write_key(writer, "toolCall");
	json_write_object(writer);
	question_write_head(
		writer, request, reason, shown[subject->operation].kind, buf_span(&what));
	if (path) {
		write_location(writer, path);
	}
	write_content(writer, request, call, path);
	json_write_object_end(writer);
	buf_finish(&what);
	free(path);
}

/* Writes the id that the editor knows; for an unknown session, the agent's id. */
static void write_session_id(
	struct json_writer *writer, const struct request *request, const struct call *call)
{
	struct span raw = message_place(&call->message, PLACE_SESSION_ID);
	json_write_key(writer, "sessionId");
	if (request->session_id) {
		json_write_text(writer, request->session_id);
	} else {
		json_write_raw(writer, raw.len > 0 ? raw : SPAN_LITERAL("\"\""));
	}
}

struct question_reason grant_question_reason(const struct grant_decision *decision)
{
	return (struct question_reason){
		.rule = decision->verdict.rule,
		.is_users_rule = decision->source == GRANT_BY_RULE,
	};
}

bool grant_question_write(struct request *request, const struct call *call,
	const struct question_reason *reason, struct error *err)
{
	struct json_writer writer;
	question_begin(request, &writer);
	write_session_id(&writer, request, call);
	write_tool_call(&writer, request, call, reason);
	return question_end(request, &writer, err);
}

/* ---- the old text ---- */

static const char not_shown[] = "The file's present content is not shown: ";

static bool write_note(struct buf *out, const struct old_text_answer *answer)
{
	struct json_writer writer;
	struct buf text;
	buf_init(&text, SIZE_MAX / 2);
	bool ok = buf_append_format(&text, NULL, "%s%s", not_shown, answer->reason);
	json_write_begin(&writer, out);
	question_write_text(&writer, buf_span(&text));
	buf_finish(&text);
	return ok && json_write_end(&writer, NULL) && buf_append(out, SPAN_LITERAL(","), NULL);
}

bool grant_question_complete(
	struct buf *out, struct request *request, const struct old_text_answer *answer)
{
	struct span text = buf_span(&request->message);
	bool is_known = answer->kind != OLD_TEXT_UNKNOWN;
	size_t at =
		asking_of(request)->diff_at + (is_known ? 1 : 0); // inside the diff, or before it
	bool ok = buf_append(out, (struct span){text.data, at}, NULL);
	if (ok && is_known) {
		ok = buf_append(out, SPAN_LITERAL("\"oldText\":"), NULL) &&
		     buf_append(out,
			     answer->kind == OLD_TEXT_NEW ? SPAN_LITERAL("null") : answer->json,
			     NULL) &&
		     buf_append(out, SPAN_LITERAL(","), NULL);
	} else if (ok) {
		ok = write_note(out, answer);
	}
	return ok && buf_append(out, (struct span){text.data + at, text.len - at}, NULL);
}
