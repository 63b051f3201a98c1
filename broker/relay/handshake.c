/* SPDX-License-Identifier: MIT */
#include "broker/relay/handshake.h"

#include "base/json_doc.h"
#include "base/text.h"
#include "broker/methods/own_methods.h"
#include "broker/relay/auth_methods.h"
#include "broker/relay/login_look.h"
#include "broker/relay/relay_end.h"
#include "broker/relay/relay_mcp.h"
#include "broker/relay/relay_state.h"
#include "broker/relay/relay_recover.h"
#include "broker/relay/relay_toolhost.h"
#include "broker/session/answer.h"

/* ---- initialize, on its way to the agent ---- */

enum { GREETING_MAX = 1024 * 1024 }; // bytes of an initialize or authenticate to keep

/* A part of the relay. */
struct greeting {
	struct buf initialize;   // the editor's whole message, once it was answered with a result
	struct buf authenticate; // the whole message of the last one that succeeded
	struct offers offers;
};

static void init(void *part)
{
	struct greeting *greeting = part;
	buf_init(&greeting->initialize, GREETING_MAX);
	buf_init(&greeting->authenticate, GREETING_MAX);
}

static void finish(void *part, void *relay)
{
	struct greeting *greeting = part;
	buf_finish(&greeting->initialize);
	buf_finish(&greeting->authenticate);
}

static const struct part_type type = {
	.size = sizeof(struct greeting), .init = init, .finish = finish};

static struct greeting *greeting_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

const struct offers *handshake_offers(struct relay *relay)
{
	return &greeting_of(relay)->offers;
}

bool handshake_was_made(struct relay *relay)
{
	return greeting_of(relay)->initialize.len > 0;
}

/* Keeps the whole request for agents that start later. */
static bool remember_message(struct request *request, const struct call *call, struct error *err)
{
	buf_clear(&request->message);
	if (!buf_append(&request->message, call->frame->bytes, err)) {
		return error_prefix(err, "%s", call->message.method);
	}
	return true;
}

/* Version 1 is the stable one, and the only one that this broker supports. */
static bool pin_version(struct relay *relay, const struct call *call, struct error *err)
{
	const struct json_hit *hit = message_hit(&call->message, PLACE_PROTOCOL_VERSION);
	struct span value = message_place(&call->message, PLACE_PROTOCOL_VERSION);
	bool is_number = value.len > 0 && value.data[0] >= '0' && value.data[0] <= '9';
	if (!is_number || span_is(value, "1")) {
		return true;
	}
	return splice_add(call->edits, hit->start, hit->end, SPAN_LITERAL("1"), err);
}

static bool has_member(const struct json_doc *doc, const char *name)
{
	return json_get(doc, 0, name) != JSON_NODE_NONE;
}

/*
 * ACP version 2, InitializeRequest: `info` and `capabilities`, where version 1 has `clientInfo` and
 * `clientCapabilities`.
 */
static bool is_of_version_2(const struct call *call)
{
	struct span params = message_place(&call->message, PLACE_PARAMS);
	struct json_doc *doc = params.len > 0 ? json_doc_parse_unchecked(params, NULL) : NULL;
	bool is_it = doc && json_int(doc, json_get(doc, 0, "protocolVersion"), 0) >= 2 &&
	             (has_member(doc, "info") || has_member(doc, "capabilities")) &&
	             !has_member(doc, "clientInfo") && !has_member(doc, "clientCapabilities");
	json_doc_destroy(doc);
	return is_it;
}

bool handshake_refuses(struct relay *relay, const struct call *call)
{
	if (call->method->means != MEANS_GREETING || !is_of_version_2(call)) {
		return false;
	}
	struct error err;
	failure_set(&err, "VERSION_NOT_SPOKEN", "initialize",
		"initialize: acp-broker speaks ACP version 1, but these params are of another "
		"version");
	err.detail = message_place(&call->message, PLACE_PROTOCOL_VERSION);
	relay_fail(relay, call->message.id, &err);
	return true;
}

bool handshake_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	if (!remember_message(request, call, err) || !pin_version(relay, call, err) ||
		!relay_toolhost_greet(request->peer, call, err)) {
		return false;
	}
	relay_state_greet(relay, call);
	request->peer->is_greeting = true;
	agent_expect_answer(request->peer->agent, "initialize");
	return true;
}

void handshake_on_over(struct relay *relay, struct request *request)
{
	request->peer->is_greeting = false;
	agent_has_answered(request->peer->agent);
	relay_recover(request->peer);
}

/* ---- the result of initialize, on its way to the editor ---- */

static bool check_version(const struct call *call, struct error *err)
{
	struct span version = message_place(&call->message, PLACE_RESULT_PROTOCOL_VERSION);
	if (span_is(version, "1")) {
		return true;
	}
	char shown[44];
	version = version.len > 0 ? version : SPAN_LITERAL("nothing");
	text_format(shown, sizeof(shown), "%.*s", (int)version.len, version.data);
	return error_set_reason(err, ERROR_PROTOCOL, "PROTOCOL_UNSUPPORTED",
		"the agent answered initialize with protocolVersion %s, but the broker speaks 1",
		shown);
}

/* Writes what the profile asks for but does not get, as an array of sentences. */
static void write_warnings(struct json_writer *writer, const struct sandbox *sandbox)
{
	json_write_member_words(writer, "warnings", sandbox ? sandbox_warnings(sandbox) : NULL);
}

/* Writes the keys that the agent can use but not read, if there are any. */
static void write_keys(struct json_writer *writer, const struct sandbox *sandbox)
{
	const char *const *keys = sandbox ? sandbox_keys(sandbox) : NULL;
	if (keys) {
		json_write_member_words(writer, "keys", keys);
	}
}

/* Writes whether processes go on when the connection is lost, if there is a connection. */
static void write_outlives(struct json_writer *writer, const struct sandbox *sandbox)
{
	const char *outlives = sandbox ? sandbox_outlives(sandbox) : NULL;
	if (outlives) {
		json_write_member(writer, "outlives", outlives);
	}
}

/*
 * Writes what separates the agent from this machine. A copy has files of its own, but confines
 * nobody.
 */
static void write_boundary(struct json_writer *writer, const struct sandbox_capabilities *can)
{
	bool is_separate = can && can->isolated;
	bool is_confined = can && can->confined;
	json_write_member_bool(writer, "isolated", is_separate && is_confined);
	json_write_member_bool(writer, "separate_files", is_separate);
	json_write_member_bool(writer, "confined", is_confined);
}

static bool write_broker_meta(struct relay *relay, struct request *request, struct error *err)
{
	struct json_writer writer;
	const struct sandbox *sandbox = agent_sandbox(request->peer->agent);
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_object(&writer);
	json_write_member(&writer, "version", ACP_BROKER_VERSION);
	json_write_member(&writer, "backend", relay->config.profile->backend);
	json_write_key(&writer, "capabilities");
	json_write_object(&writer);
	write_boundary(&writer, sandbox ? sandbox_capabilities(sandbox) : NULL);
	json_write_key(&writer, "methods");
	json_write_array(&writer);
	for (size_t i = 0; own_method_name(i); i++) {
		json_write_text(&writer, own_method_name(i));
	}
	json_write_array_end(&writer);
	json_write_key(&writer, "notifications");
	json_write_array(&writer);
	json_write_text(&writer, "_broker/session/state");
	json_write_array_end(&writer);
	json_write_object_end(&writer);
	write_warnings(&writer, sandbox);
	write_keys(&writer, sandbox);
	write_outlives(&writer, sandbox);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

/* Adds result._meta.broker, even if there is no _meta yet. */
static bool add_meta(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	if (!write_broker_meta(relay, request, err)) {
		return false;
	}
	struct span value = buf_span(&relay->scratch);
	struct span meta = message_place(&call->message, PLACE_RESULT_META);
	const struct json_hit *own = message_hit(&call->message, PLACE_RESULT_META_BROKER);
	if (own) {
		return splice_add(call->edits, own->start, own->end, value, err);
	}
	if (meta.len > 0 && meta.data[0] == '{') {
		return relay_insert_member(relay, call, meta, "broker", value, err);
	}
	struct buf whole;
	buf_init(&whole, SPLICE_BYTES_MAX);
	bool ok = buf_append(&whole, SPAN_LITERAL("{\"broker\":"), err) &&
	          buf_append(&whole, value, err) && buf_append(&whole, SPAN_LITERAL("}"), err);
	const struct json_hit *hit = message_hit(&call->message, PLACE_RESULT_META);
	if (ok && hit) {
		ok = splice_add(call->edits, hit->start, hit->end, buf_span(&whole), err);
	} else if (ok) {
		ok = relay_insert_member(relay, call, message_place(&call->message, PLACE_RESULT),
			"_meta", buf_span(&whole), err);
	}
	buf_finish(&whole);
	return ok;
}

static void remember_agent_name(struct peer *peer, const struct call *call)
{
	if (!message_string(&call->message, PLACE_RESULT_AGENT_NAME, peer->agent_name,
		    sizeof(peer->agent_name))) {
		peer->agent_name[0] = '\0';
	}
}

/* ACP, AgentCapabilities: how the agent can restore a session. */
static void remember_offers(struct relay *relay, const struct call *call)
{
	struct span resume = message_place(&call->message, PLACE_RESULT_RESUME);
	struct span close = message_place(&call->message, PLACE_RESULT_CLOSE);
	greeting_of(relay)->offers = (struct offers){
		.load = span_is(message_place(&call->message, PLACE_RESULT_LOAD), "true"),
		.resume = resume.len > 0 && resume.data[0] == '{',
		.close = close.len > 0 && close.data[0] == '{',
	};
}

bool handshake_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	struct span result = message_place(&call->message, PLACE_RESULT);
	if (result.len == 0 || result.data[0] != '{') {
		return error_set_reason(err, ERROR_PROTOCOL, "PROTOCOL_UNSUPPORTED",
			"the agent's answer to initialize is not an object");
	}
	if (!check_version(call, err)) {
		relay_note_start(relay, err->reason);
		return false;
	}
	if (!add_meta(relay, request, call, err) || !auth_methods_edit(request->peer, call, err)) {
		return false;
	}
	request->peer->was_greeted = true;
	login_look_greeting(request->peer, call);
	relay_note_start(relay, NULL);
	remember_agent_name(request->peer, call);
	remember_offers(relay, call);
	relay_mcp_learn(relay, call);
	buf_clear(&greeting_of(relay)->initialize);
	return buf_append(&greeting_of(relay)->initialize, buf_span(&request->message), err);
}

/* ---- authenticate ---- */

bool handshake_keep_authenticate(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	return remember_message(request, call, err);
}

bool handshake_on_authenticated(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	buf_clear(&greeting_of(relay)->authenticate);
	return buf_append(&greeting_of(relay)->authenticate, buf_span(&request->message), err);
}

bool handshake_on_logged_out(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	buf_clear(&greeting_of(relay)->authenticate); // later agents are not logged in again
	return true;
}

/* ---- further agents ---- */

typedef bool edit_function(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);

/* Sends a request of the editor again, as the broker's own, before messages that are held. */
static bool send_again(struct peer *peer, struct span text, edit_function *edit,
	struct request *request, struct error *err)
{
	struct relay *relay = peer->relay;
	struct buf bytes;
	struct buf spliced;
	buf_init(&bytes, SIZE_MAX / 2);
	buf_init(&spliced, SIZE_MAX / 2);
	bool ok = buf_append(&bytes, text, err);
	struct parcel *parcel = parcel_of(&bytes, relay->places);
	struct call call = {.frame = NULL};
	ok = (call_open(&call, parcel) ||
		     error_set(err, ERROR_PROTOCOL, "it cannot be read again")) &&
	     ok && pending_add(&peer->asked, &request->pending, (struct span){NULL, 0}, err);
	bool is_added = ok;
	ok = ok &&
	     relay_edit_minted(
		     &call, message_hit(&call.message, PLACE_ID), request->pending.id, err) &&
	     (!edit || edit(relay, request, &call, err)) &&
	     splice_seal(call.edits, call.frame->bytes.len, err) &&
	     splice_append(call.edits, call.frame->bytes, &spliced, err);
	if (ok) {
		peer_send_ahead(peer, buf_span(&spliced));
	} else if (is_added) {
		pending_remove(&peer->asked, &request->pending);
	}
	parcel_destroy(parcel);
	buf_finish(&bytes);
	buf_finish(&spliced);
	return ok;
}

static void give_up(struct peer *peer, const char *what, struct error *err)
{
	error_prefix(err, "%s: restarting it: %s failed", peer->hop, what);
	agent_fail(peer->agent, error_at(err, "initialize"));
}

/* Why an answer cannot be used; false if it is a result. */
static bool answer_has_failed(
	const struct call *answer, const struct error *failure, struct error *err)
{
	char said[604];
	if (!failure && !answer->message.is_error) {
		return false;
	}
	struct span error =
		failure ? span_of(failure->text) : message_place(&answer->message, PLACE_ERROR);
	text_format(said, sizeof(said), "%.*s", (int)error.len, error.data);
	failure_set(err, "AGENT_START_FAILED", "initialize", "%s", said);
	return true;
}

static void on_authenticated_again(struct relay *relay, struct request *request,
	const struct call *answer, const struct error *failure)
{
	struct error err;
	agent_has_answered(request->peer->agent);
	if (request->peer->is_down) {
		return;
	}
	if (answer_has_failed(answer, failure, &err)) {
		give_up(request->peer, "authenticate", &err);
		return;
	}
	link_release(agent_link(request->peer->agent));
}

static void on_greeted_again(struct relay *relay, struct request *request,
	const struct call *answer, const struct error *failure)
{
	struct peer *peer = request->peer;
	struct error err;
	handshake_on_over(relay, request);
	if (peer->is_down) {
		return;
	}
	if (answer_has_failed(answer, failure, &err)) {
		give_up(peer, "initialize", &err);
		return;
	}
	if (!check_version(answer, &err)) { // another program has replaced it meanwhile
		give_up(peer, "initialize", &err);
		return;
	}
	peer->was_greeted = true;
	relay_note_start(relay, NULL);
	remember_agent_name(peer, answer);
	remember_offers(relay, answer);
	if (greeting_of(relay)->authenticate.len == 0) {
		link_release(agent_link(peer->agent));
		return;
	}
	struct request *next = request_create(peer, NULL);
	next->on_answer = on_authenticated_again;
	if (!send_again(peer, buf_span(&greeting_of(relay)->authenticate), NULL, next, &err)) {
		request_destroy(next);
		err.reason = "AGENT_START_FAILED";
		give_up(peer, "authenticate", &err);
		return;
	}
	agent_expect_answer(peer->agent, "authenticate");
}

void handshake_repeat(struct peer *peer)
{
	struct relay *relay = peer->relay;
	struct error err;
	struct request *request = request_create(peer, NULL);
	request->on_answer = on_greeted_again;
	link_hold(agent_link(peer->agent));
	if (!send_again(peer, buf_span(&greeting_of(relay)->initialize), handshake_on_send, request,
		    &err)) {
		request_destroy(request);
		err.reason = "AGENT_START_FAILED";
		give_up(peer, "initialize", &err);
	}
}
