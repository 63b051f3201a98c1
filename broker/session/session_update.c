/* SPDX-License-Identifier: MIT */
#include "broker/session/session_update.h"

#include "broker/session/hop.h"

void session_update_begin(
	struct relay *relay, struct json_writer *writer, const char *session_id, const char *kind)
{
	buf_clear(&relay->scratch);
	json_write_begin(writer, &relay->scratch);
	json_write_object(writer);
	json_write_member(writer, "jsonrpc", "2.0");
	json_write_member(writer, "method", "session/update");
	json_write_key(writer, "params");
	json_write_object(writer);
	json_write_member(writer, "sessionId", session_id);
	json_write_key(writer, "update");
	json_write_object(writer);
	json_write_member(writer, "sessionUpdate", kind);
}

void session_update_send(struct relay *relay, struct json_writer *writer)
{
	json_write_object_end(writer);
	json_write_object_end(writer);
	json_write_object_end(writer);
	if (json_write_end(writer, NULL)) {
		relay_send_editor(relay, buf_span(&relay->scratch));
	}
}
