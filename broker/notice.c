/* SPDX-License-Identifier: MIT */
#include "broker/notice.h"

#include <stdio.h>

#include "base/log.h"
#include "broker/relay_internal.h"

static void write_member(struct json_writer *writer, const char *key, const char *value)
{
	json_write_key(writer, key);
	json_write_text(writer, value);
}

/* ACP, session/update of the kind tool_call. */
static void write_update(
	struct json_writer *writer, unsigned number, const char *text, bool is_failure)
{
	char id[40];
	snprintf(id, sizeof(id), "acp-broker-notice-%u", number);
	json_write_object(writer);
	write_member(writer, "sessionUpdate", "tool_call");
	write_member(writer, "toolCallId", id);
	write_member(writer, "title", text);
	write_member(writer, "kind", "other");
	write_member(writer, "status", is_failure ? "failed" : "completed");
	json_write_object_end(writer);
}

void notice_send(
	struct relay *relay, const struct session *session, const char *text, bool is_failure)
{
	struct json_writer writer;
	log_warning("session %s: %s", session->id, text);
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_object(&writer);
	write_member(&writer, "jsonrpc", "2.0");
	write_member(&writer, "method", "session/update");
	json_write_key(&writer, "params");
	json_write_object(&writer);
	write_member(&writer, "sessionId", session->id);
	json_write_key(&writer, "update");
	write_update(&writer, ++relay->notices, text, is_failure);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	if (json_write_end(&writer, NULL)) {
		relay_send_editor(relay, buf_span(&relay->scratch));
	}
}
