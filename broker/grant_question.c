/* SPDX-License-Identifier: MIT */
#include "broker/grant_relay.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/question.h"
#include "broker/subject_env.h"

/* What a question of the broker's own looks like in the editor (ACP, session/request_permission).
 */

enum {
	TITLE_MAX = 512,         // bytes of a question's title
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

/* How an operation is shown: its title's first word and its tool kind. */
static const struct {
	const char *verb;
	const char *kind;
} shown[] = {
	[POLICY_READ] = {"Read", "read"},
	[POLICY_WRITE] = {"Write", "edit"},
	[POLICY_TERMINAL] = {"Run", "execute"},
};

static void write_member(struct json_writer *writer, const char *key, const char *value)
{
	json_write_key(writer, key);
	json_write_text(writer, value);
}

/* The new text as a diff; the old one is put in once it is known. */
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
	request->diff_at = writer->out->len;
	json_write_object(writer);
	write_member(writer, "type", "diff");
	write_member(writer, "path", path);
	json_write_key(writer, "newText");
	json_write_raw(writer, text.len > 0 && text.data[0] == '"' ? text : SPAN_LITERAL("\"\""));
	json_write_object_end(writer);
}

static void write_command(struct json_writer *writer, const struct subject *subject)
{
	struct buf text;
	char *command = subject_text_create(subject);
	size_t len = strlen(command);
	buf_init(&text, SIZE_MAX / 2);
	bool ok = buf_append(
		&text, (struct span){command, len < COMMAND_MAX ? len : COMMAND_MAX}, NULL);
	if (len > COMMAND_MAX) {
		ok = ok &&
		     buf_append_format(&text, NULL, "\n… and %zu bytes more", len - COMMAND_MAX);
	}
	if (subject->cwd) {
		ok = ok && buf_append_format(&text, NULL, "\n\nin %s", subject->cwd);
	}
	ok = ok && subject_env_show(subject, &text);
	if (ok) {
		question_write_text(writer, buf_span(&text));
	}
	buf_finish(&text);
	free(command);
}

static void write_content(struct json_writer *writer, struct request *request,
	const struct call *call, const struct subject *subject, const char *path)
{
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
	write_member(writer, "path", path);
	json_write_object_end(writer);
	json_write_array_end(writer);
}

static void write_tool_call(struct json_writer *writer, struct request *request,
	const struct call *call, const struct subject *subject)
{
	char text[TITLE_MAX];
	char title[TITLE_MAX + 16];
	char *path = subject->paths
	                     ? relay_map_path(request->peer, PATH_TO_LOCAL, subject->paths[0])
	                     : NULL;
	snprintf(title, sizeof(title), "%s %s", shown[subject->operation].verb,
		path ? path : subject_text(subject, text, sizeof(text)));
	json_write_key(writer, "toolCall");
	json_write_object(writer);
	question_write_tool_call_id(writer, request);
	write_member(writer, "title", title);
	write_member(writer, "kind", shown[subject->operation].kind);
	write_member(writer, "status", "pending");
	if (path) {
		write_location(writer, path);
	}
	write_content(writer, request, call, subject, path);
	json_write_object_end(writer);
	free(path);
}

/* As the editor knows it; of a session that is not known as the agent calls it. */
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

bool grant_question_write(struct request *request, const struct call *call,
	const struct subject *subject, struct error *err)
{
	struct json_writer writer;
	question_begin(request, &writer);
	write_session_id(&writer, request, call);
	write_tool_call(&writer, request, call, subject);
	return question_end(request, &writer, err);
}

/* ---- the old text ---- */

static const char not_shown[] = "What the file holds now is not shown: ";

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
	struct buf *out, const struct request *request, const struct old_text_answer *answer)
{
	struct span text = buf_span(&request->message);
	bool is_known = answer->kind != OLD_TEXT_UNKNOWN;
	size_t at = request->diff_at + (is_known ? 1 : 0); // inside the diff, or before it
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
