/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_state.h"

#include "base/json_doc.h"

/* Whether the editor has asked for _broker/session/state: a part of the relay, a bool. */
static const struct part_type type = {.size = sizeof(bool)};

void relay_state_want(struct relay *relay, bool is_wanted)
{
	*(bool *)parts_get(&relay->parts, &type) = is_wanted;
}

void relay_state_greet(struct relay *relay, const struct call *call)
{
	struct span raw = message_place(&call->message, PLACE_CLIENT_CAPABILITIES);
	struct json_doc *doc = raw.len > 0 ? json_doc_parse_unchecked(raw, NULL) : NULL;
	relay_state_want(
		relay, doc && json_bool(doc, json_path(doc, 0, "_meta.broker.state"), false));
	json_doc_destroy(doc);
}

static void write_sessions(struct json_writer *writer, struct relay *relay, struct peer *peer,
	const struct record *record)
{
	json_write_key(writer, "sessionIds");
	json_write_array(writer);
	for (size_t i = 0; i < record->session_count; i++) {
		const struct session *session =
			peer ? session_find_agent(&relay->sessions, peer, record->sessions[i])
			     : NULL;
		json_write_text(writer, session ? session->id : record->sessions[i]);
	}
	json_write_array_end(writer);
}

static void write_params(struct json_writer *writer, struct relay *relay, struct peer *peer,
	const struct keeper_state *state)
{
	const struct record *record = state->record;
	json_write_object(writer);
	json_write_member(writer, "record", record->id);
	write_sessions(writer, relay, peer, record);
	json_write_member(writer, "state", record_state_name(record->state));
	json_write_member(writer, "previous", state->previous);
	json_write_member(writer, "reason", record->error);
	json_write_member(writer, "localRoot", record->local_root);
	json_write_member(writer, "runtimeRoot", record->runtime_root);
	json_write_object_end(writer);
}

void relay_state_tell(struct relay *relay, struct peer *peer, const struct keeper_state *state)
{
	struct json_writer writer;
	const bool *tells = parts_find(&relay->parts, &type);
	if (!tells || !*tells) {
		return;
	}
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_object(&writer);
	json_write_member(&writer, "jsonrpc", "2.0");
	json_write_member(&writer, "method", "_broker/session/state");
	json_write_key(&writer, "params");
	write_params(&writer, relay, peer, state);
	json_write_object_end(&writer);
	if (json_write_end(&writer, NULL)) {
		relay_send_editor(relay, buf_span(&relay->scratch));
	}
}
