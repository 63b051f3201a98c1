/* SPDX-License-Identifier: MIT */
#include "broker/question.h"

#include <stdio.h>

#include "broker/session_update.h"

static void write_member(struct json_writer *writer, const char *key, const char *value)
{
	json_write_key(writer, key);
	json_write_text(writer, value);
}

void question_begin(struct request *request, struct json_writer *writer)
{
	struct relay *relay = request->peer->relay;
	buf_clear(&relay->scratch);
	json_write_begin(writer, &relay->scratch);
	json_write_object(writer);
	write_member(writer, "jsonrpc", "2.0");
	json_write_key(writer, "id");
	json_write_int(writer, (long long)request->pending.id);
	write_member(writer, "method", "session/request_permission");
	json_write_key(writer, "params");
	json_write_object(writer);
}

void question_write_tool_call_id(struct json_writer *writer, const struct request *request)
{
	char id[40];
	snprintf(id, sizeof(id), "acp-broker-%llu", (unsigned long long)request->pending.id);
	write_member(writer, "toolCallId", id);
}

void question_write_text(struct json_writer *writer, struct span text)
{
	json_write_object(writer);
	write_member(writer, "type", "content");
	json_write_key(writer, "content");
	json_write_object(writer);
	write_member(writer, "type", "text");
	json_write_key(writer, "text");
	json_write_string(writer, text);
	json_write_object_end(writer);
	json_write_object_end(writer);
}

bool question_end(const struct request *request, struct json_writer *writer, struct error *err)
{
	json_write_key(writer, "options");
	json_write_raw(writer, span_of(request->options));
	json_write_object_end(writer);
	json_write_object_end(writer);
	return json_write_end(writer, err);
}

void question_close(struct relay *relay, const struct request *request, bool allowed)
{
	struct json_writer writer;
	if (relay->editor_has_ended || !request->session_id || request->old_text) {
		return;
	}
	session_update_begin(relay, &writer, request->session_id, "tool_call_update");
	question_write_tool_call_id(&writer, request);
	write_member(&writer, "status", allowed ? "completed" : "failed");
	session_update_send(relay, &writer);
}
