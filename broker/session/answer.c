/* SPDX-License-Identifier: MIT */
#include "broker/session/answer.h"

#include <assert.h>
#include <stdio.h>

const struct error relay_is_ending = {.code = ERROR_UNAVAILABLE,
	.reason = "SHUTTING_DOWN",
	.stage = "stop",
	.text = "the broker is ending"};
const struct error relay_has_ended = {.code = ERROR_UNAVAILABLE,
	.reason = "SHUTTING_DOWN",
	.stage = "stop",
	.text = "the broker has ended"};
const struct error relay_editor_has_left = {.code = ERROR_UNAVAILABLE,
	.reason = "EDITOR_GONE",
	.stage = "stop",
	.text = "the editor has closed the session"};

/*
 * A sandbox's error may have a reason of another provider, whose code the sandbox's provider uses.
 */
static const struct error_reason *find_reason(const struct relay_config *config, const char *name)
{
	const struct provider *provider = config->provider;
	const struct error_reason *reason = provider_reason_find(provider, name);
	for (size_t i = 0; !reason && provider && config->registry; i++) {
		provider = registry_at(config->registry, i);
		reason = provider ? provider_reason_find(provider, name) : NULL;
	}
	return reason;
}

static struct span write_failure(struct relay *relay, struct span id, const struct error *failure)
{
	buf_clear(&relay->scratch);
	failure_write(&relay->scratch, id, failure,
		find_reason(&relay->config, failure_code_of(failure)));
	return buf_span(&relay->scratch);
}

void relay_fail(struct relay *relay, struct span id, const struct error *failure)
{
	if (relay->ops->takes_failure(relay, id, failure)) {
		return;
	}
	relay_send_editor(relay, write_failure(relay, id, failure));
}

bool relay_admits(struct relay *relay, const struct call *call, const struct backlog *backlog)
{
	const struct profile *profile = relay->config.profile;
	struct error err;
	if (backlog->count < profile->max_requests && backlog->bytes <= profile->max_queue) {
		return true;
	}
	if (call->message.kind != MESSAGE_REQUEST) {
		return false;
	}
	relay_fail(relay, call->message.id,
		failure_set(&err, "RESOURCE_LIMIT_EXCEEDED", backlog->stage,
			"more %s than max-requests allows, or more bytes than max-queue allows, "
			"wait for %s",
			backlog->what, backlog->that));
	return false;
}

bool relay_admits_at(struct relay *relay, const struct call *call, struct desk_pick pick)
{
	const struct stage_row *row = &relay->desk.rows[pick.stage];
	struct desk_load load = desk_load(&relay->desk, pick);
	bool is_waited_for = pick.stage == STAGE_ORDER; // plus the request that they wait for
	struct backlog backlog = {
		load.count + is_waited_for, load.bytes, row->name, row->what, row->that};
	return relay_admits(relay, call, &backlog);
}

void peer_fail(struct peer *peer, struct span id, const struct error *failure)
{
	peer_send(peer, write_failure(peer->relay, id, failure));
}

void peer_fail_method(
	struct peer *peer, const struct method *method, struct span id, const struct error *failure)
{
	if (method && method->on_failure) {
		method->on_failure(peer, id, failure);
	} else {
		peer_fail(peer, id, failure);
	}
}

static const char before_id[] = "{\"jsonrpc\":\"2.0\",\"id\":";
static const char before_result[] = ",\"result\":";
static const char after_result[] = "}";

/* A result may be longer than the relay's scratch buffer. */
static void write_answer(struct buf *out, struct span id, struct span result)
{
	const size_t more = sizeof(before_id) + sizeof(before_result) + sizeof(after_result);
	buf_init(out, more + id.len + result.len);
	char *room = buf_reserve(out, out->max, NULL);
	assert(room);
	(void)room;
	buf_add(out, SPAN_LITERAL(before_id));
	buf_add(out, id);
	buf_add(out, SPAN_LITERAL(before_result));
	buf_add(out, result);
	buf_add(out, SPAN_LITERAL(after_result));
}

void peer_answer(struct peer *peer, struct span id, struct span result)
{
	struct buf out;
	write_answer(&out, id, result);
	peer_send_taken(peer, &out);
}

void peer_answer_taken(struct peer *peer, struct span id, struct buf *result)
{
	bool ok = buf_append(result, SPAN_LITERAL(after_result), NULL) &&
	          buf_prepend(result, SPAN_LITERAL(before_result), NULL) &&
	          buf_prepend(result, id, NULL) &&
	          buf_prepend(result, SPAN_LITERAL(before_id), NULL);
	assert(ok); // its limit is that of a message
	(void)ok;
	peer_send_taken(peer, result);
}

void relay_answer(struct relay *relay, struct span id, struct span result)
{
	struct buf out;
	write_answer(&out, id, result);
	relay->ops->on_answered(relay, id);
	relay_send_editor(relay, buf_span(&out));
	buf_finish(&out);
}

void relay_answer_cancelled(struct relay *relay, struct span id)
{
	relay->ops->on_answered(relay, id);
	buf_clear(&relay->scratch);
	if (buf_append_format(&relay->scratch, NULL,
		    "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":%d,"
		    "\"message\":\"the request was cancelled\"}}",
		    (int)id.len, id.data, REQUEST_CANCELLED)) {
		relay_send_editor(relay, buf_span(&relay->scratch));
	}
}

/* A request of the editor, or one of the broker's own, is answered with a failure. */
void relay_fail_request(struct relay *relay, struct request *request, const struct error *failure)
{
	const struct method *method = request->method;
	if (method && method->before_answer) {
		method->before_answer(relay, request);
	}
	if (method && method->on_over) {
		method->on_over(relay, request);
	}
	if (request->on_answer) {
		request->on_answer(relay, request, NULL, failure);
	} else if (!method || !method->on_error ||
		   !method->on_error(relay, request, (struct span){NULL, 0})) {
		relay_fail(relay, pending_origin(&request->pending), failure);
	}
	request_destroy(request);
}

void peer_answer_when_gone(struct peer *peer, struct span id, const struct method *method)
{
	if (method && method->result_when_gone) {
		peer_answer(peer, id, span_of(method->result_when_gone));
	} else {
		peer_fail_method(peer, method, id, &relay_editor_has_left);
	}
}

void relay_cancel_prompt(struct relay *relay, const struct session *session)
{
	struct json_writer writer;
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_object(&writer);
	json_write_member(&writer, "jsonrpc", "2.0");
	json_write_member(&writer, "method", "session/cancel");
	json_write_key(&writer, "params");
	json_write_object(&writer);
	json_write_member(&writer, "sessionId", session->agent_id);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	if (json_write_end(&writer, NULL)) {
		peer_send(session->peer, buf_span(&relay->scratch));
	}
}
