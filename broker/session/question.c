/* SPDX-License-Identifier: MIT */
#include "broker/session/question.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/markdown.h"
#include "broker/policy/subject.h"
#include "broker/session/session_update.h"
#include "broker/session/tool_call_id.h"

enum { REASON_MAX = 256 }; // bytes of a rule that are shown

static void finish(void *part, void *request)
{
	struct question *question = part;
	subject_destroy(question->subject);
	free(question->tool_call_id);
	free(question->title);
}

static const struct part_type type = {.size = sizeof(struct question), .finish = finish};

struct question *question_of(struct request *request)
{
	return parts_get(&request->parts, &type);
}

struct question *question_find(const struct request *request)
{
	return parts_find(&request->parts, &type);
}

void question_begin(struct request *request, struct json_writer *writer)
{
	struct relay *relay = request->peer->relay;
	buf_clear(&relay->scratch);
	json_write_begin(writer, &relay->scratch);
	json_write_object(writer);
	json_write_member(writer, "jsonrpc", "2.0");
	json_write_member_int(writer, "id", (long long)request->pending.id);
	json_write_member(writer, "method", "session/request_permission");
	json_write_key(writer, "params");
	json_write_object(writer);
}

static void append(struct buf *out, const char *text)
{
	buf_add(out, span_of(text));
}

static void say_reason(struct buf *out, const struct question_reason *reason)
{
	append(out, reason->is_users_rule ? "acp-broker asks by your rule "
					  : "acp-broker asks because of ");
	markdown_code(out, span_of(reason->rule), REASON_MAX);
}

void question_write_head(struct json_writer *writer, struct request *request,
	const struct question_reason *reason, const char *kind, struct span what)
{
	struct question *question = question_of(request);
	struct buf title;
	char id[TOOL_CALL_ID_MAX];
	assert(!question->tool_call_id && !question->title);
	tool_call_id_create(id);
	buf_init(&title, SIZE_MAX / 2);
	say_reason(&title, reason);
	append(&title, ": ");
	buf_add(&title, what);
	question->tool_call_id = mem_strdup(id);
	question->title = mem_strndup(buf_span(&title));
	buf_finish(&title);
	json_write_member(writer, "toolCallId", question->tool_call_id);
	json_write_member(writer, "title", question->title);
	json_write_member(writer, "kind", kind);
	json_write_member(writer, "status", "pending");
}

void question_write_text(struct json_writer *writer, struct span text)
{
	json_write_object(writer);
	json_write_member(writer, "type", "content");
	json_write_key(writer, "content");
	json_write_object(writer);
	json_write_member(writer, "type", "text");
	json_write_member_string(writer, "text", text);
	json_write_object_end(writer);
	json_write_object_end(writer);
}

void question_write_content(struct json_writer *writer, struct span text)
{
	json_write_key(writer, "content");
	json_write_array(writer);
	if (text.len > 0) {
		question_write_text(writer, text);
	}
	json_write_array_end(writer);
}

bool question_end(const struct request *request, struct json_writer *writer, struct error *err)
{
	json_write_member_raw(writer, "options", span_of(question_find(request)->options));
	json_write_object_end(writer);
	json_write_object_end(writer);
	return json_write_end(writer, err);
}

void question_close(struct relay *relay, const struct request *request, bool allowed)
{
	struct json_writer writer;
	const struct question *question = question_find(request);
	if (relay->editor_has_ended || !request->session_id || question->is_hidden) {
		return;
	}
	session_update_begin(relay, &writer, request->session_id, "tool_call_update");
	json_write_member(&writer, "toolCallId", question->tool_call_id);
	json_write_member(&writer, "title", question->title);
	json_write_member(&writer, "status", allowed ? "completed" : "failed");
	session_update_send(relay, &writer);
}
