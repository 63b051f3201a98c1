/* SPDX-License-Identifier: MIT */
#include "broker/client/methods.h"

#include <assert.h>
#include <stdint.h>

void client_params_begin(struct json_writer *writer, struct buf *out)
{
	buf_init(out, SIZE_MAX / 2);
	json_write_begin(writer, out);
	json_write_object(writer);
}

void client_params_send(
	struct client *client, long id, const char *method, struct json_writer *writer)
{
	json_write_object_end(writer);
	bool ok = json_write_end(writer, NULL);
	assert(ok); // the buffer has no maximum
	(void)ok;
	client_request(client, id, method, buf_span(writer->out));
	buf_finish(writer->out);
}

void client_write_initialize(struct json_writer *writer, const char *client_name, bool wants_states)
{
	json_write_member_int(writer, "protocolVersion", 1);
	json_write_key(writer, "clientInfo");
	json_write_object(writer);
	json_write_member(writer, "name", client_name);
	json_write_member(writer, "version", ACP_BROKER_VERSION);
	json_write_object_end(writer);
	json_write_member_raw(writer, "clientCapabilities",
		wants_states ? SPAN_LITERAL("{\"_meta\":{\"broker\":{\"state\":true}}}")
			     : SPAN_LITERAL("{}"));
}

void client_write_new(struct json_writer *writer, const char *cwd)
{
	json_write_member(writer, "cwd", cwd);
	json_write_member_raw(writer, "mcpServers", SPAN_LITERAL("[]"));
}

void client_write_prompt(struct json_writer *writer, const char *session_id, struct span text)
{
	json_write_member_raw(writer, "sessionId", span_of(session_id));
	json_write_key(writer, "prompt");
	json_write_array(writer);
	json_write_object(writer);
	json_write_member(writer, "type", "text");
	json_write_member_string(writer, "text", text);
	json_write_object_end(writer);
	json_write_array_end(writer);
}

char *client_take_session_id(const struct message *message, struct error *err)
{
	struct span id = message_place(message, PLACE_RESULT_SESSION_ID);
	if (id.len > 0 && id.data[0] == '"') {
		return mem_strndup(id);
	}
	error_set(err, ERROR_PROTOCOL, "the agent's answer to session/new has no sessionId");
	return NULL;
}
