/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/soon.h"
#include "broker/relay/mode_guard.h"
#include "broker/relay/relay_turn.h"
#include "broker/relay/restore.h"
#include "broker/session/answer.h"

/* Messages that wait behind one request of a session, or behind its prompts. */
struct gate {
	struct list link; // gates_of
	struct relay *relay;
	char *session_id; // owned
	char *id;         // owned, raw; of the request that waits; NULL: none, or it was answered
	struct soon open;
};

static const struct part_type type = {.size = sizeof(struct list), .init = part_init_list};

/* The struct gate list. */
static struct list *gates_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

static void gate_destroy(struct gate *gate)
{
	soon_stop(&gate->open);
	list_remove(&gate->link);
	free(gate->session_id);
	free(gate->id);
	free(gate);
}

static struct waiting *first_behind(const struct gate *gate)
{
	return desk_first(
		&gate->relay->desk, (struct desk_pick){STAGE_ORDER, NULL, gate->session_id});
}

static struct gate *gate_of(struct relay *relay, const char *session_id)
{
	LIST_FOR_EACH(gate, gates_of(relay), struct gate, link) {
		if (strcmp(gate->session_id, session_id) == 0) {
			return gate;
		}
	}
	return NULL;
}

static struct gate *find(struct relay *relay, const struct call *call)
{
	char id[MESSAGE_SESSION_ID_MAX + 1];
	bool is_named = !list_is_empty(gates_of(relay)) &&
	                message_string(&call->message, PLACE_SESSION_ID, id, sizeof(id));
	return is_named ? gate_of(relay, id) : NULL;
}

static bool waits_for(const struct gate *gate, struct span id)
{
	return gate->id && span_equals(span_of(gate->id), id);
}

static struct session *session_of(const struct gate *gate)
{
	return session_find(&gate->relay->sessions, gate->session_id);
}

static bool waits_for_mode(const struct gate *gate)
{
	const struct session *session = session_of(gate);
	return session && mode_guard_has_prompt(gate->relay, session);
}

static bool waits_for_sync(const struct gate *gate)
{
	const struct session *session = session_of(gate);
	return session && session->peer && relay_turn_has_prompt(session->peer, session);
}

static bool is_shut(const struct gate *gate)
{
	return gate->id || waits_for_mode(gate) || waits_for_sync(gate);
}

/* ---- opening a gate ---- */

/* Handles the message as if it arrived now. */
static void go_on(struct relay *relay, struct waiting *waiting)
{
	struct call call;
	if (desk_open(waiting, &call)) {
		bool is_taken = relay->ops->on_editor_call(relay, &call);
		(void)is_taken; // always true for one that was set aside
	}
	desk_drop(waiting);
}

/* One of these messages may itself have to wait: the others then stay behind it. */
static void on_open(struct soon *soon)
{
	struct gate *gate = CONTAINER_OF(soon, struct gate, open);
	struct session *session = session_of(gate);
	struct waiting *waiting;
	if (session && !gate->id) {
		mode_guard_release(gate->relay, session);
	}
	while (!is_shut(gate) && (waiting = first_behind(gate))) {
		go_on(gate->relay, waiting);
	}
	if (!is_shut(gate)) {
		gate_destroy(gate);
	}
}

bool relay_order_is_opening(struct relay *relay, const struct session *session)
{
	const struct gate *gate = gate_of(relay, session->id);
	return gate && gate->id;
}

void relay_order_look(struct relay *relay)
{
	LIST_FOR_EACH(gate, gates_of(relay), struct gate, link) {
		if (!gate->id) {
			soon_start(&gate->open);
		}
	}
}

void relay_order_note(struct relay *relay, struct span id)
{
	LIST_FOR_EACH(gate, gates_of(relay), struct gate, link) {
		if (waits_for(gate, id)) {
			free(gate->id);
			gate->id = NULL;
		}
	}
	relay_order_look(relay); // it may have been a prompt
}

/* ---- waiting ---- */

static struct gate *gate_create(struct relay *relay, const char *session_id)
{
	struct gate *gate = mem_alloc_zero(sizeof(*gate));
	gate->relay = relay;
	gate->session_id = mem_strdup(session_id);
	soon_init(&gate->open, relay->config.loop, on_open);
	list_append(gates_of(relay), &gate->link);
	return gate;
}

static bool opens_again(const struct call *call)
{
	return call->method->means == MEANS_OPEN_AGAIN;
}

void relay_order_begin(struct relay *relay, const struct call *call)
{
	char id[MESSAGE_SESSION_ID_MAX + 1];
	if (!opens_again(call) || restore_is_own(call->message.id) ||
		!message_string(&call->message, PLACE_SESSION_ID, id, sizeof(id))) {
		return;
	}
	struct gate *gate = gate_of(relay, id);
	gate = gate ? gate : gate_create(relay, id);
	if (!gate->id) {
		soon_stop(&gate->open);
		gate->id = mem_strndup(call->message.id);
	}
}

void relay_order_begin_prompt(struct relay *relay, const struct session *session)
{
	if (!gate_of(relay, session->id)) {
		gate_create(relay, session->id);
	}
}

/*
 * A message does not wait for itself. A request whose answer says which mode the agent is in does
 * not wait until the agent has changed its mode. A prompt waits for its sync elsewhere, with the
 * others; but not while the agent is being set back: it would wait for that there, ahead of them.
 */
static bool goes_on(const struct gate *gate, const struct call *call)
{
	bool is_next = !gate->id && !first_behind(gate);
	bool is_prompt = call->method->means == MEANS_PROMPT;
	bool is_for_mode = waits_for_mode(gate) && opens_again(call);
	bool is_for_sync =
		is_prompt && waits_for_sync(gate) && !mode_guard_is_busy(session_of(gate));
	return waits_for(gate, call->message.id) || restore_is_own(call->message.id) ||
	       (is_next && (is_for_mode || is_for_sync));
}

/* A request that ends the session does not wait for its prompts. */
static void settle_prompts(struct relay *relay, const struct call *call)
{
	struct session *session = relay_session_of(relay, &call->message);
	if (call->method->means != MEANS_END_SESSION) {
		return;
	}
	relay_order_cancel(relay, call);
	if (session && session->peer) {
		relay_turn_cancel(session->peer, session);
	}
	if (session) {
		mode_guard_cancel(relay, session);
	}
}

/* A prompt that has waited for the mode goes before the messages behind it. */
static bool has_had_its_turn(const struct call *call)
{
	return call->came_from == STAGE_ORDER || call->came_from == STAGE_MODE;
}

bool relay_order_holds(struct relay *relay, const struct call *call)
{
	bool is_request = call->message.kind == MESSAGE_REQUEST;
	struct gate *gate = has_had_its_turn(call) ? NULL : find(relay, call);
	if (!gate || (is_request && goes_on(gate, call))) {
		return false;
	}
	if (is_request && relay->is_ending) {
		relay_fail(relay, call->message.id, &relay_is_ending);
		return true;
	}
	if (!relay_admits_at(
		    relay, call, (struct desk_pick){STAGE_ORDER, NULL, gate->session_id})) {
		return is_request; // a notification goes ahead; nothing is dropped
	}
	if (is_request) {
		settle_prompts(relay, call);
	}
	desk_hold(&relay->desk, NULL, STAGE_ORDER, NULL, call);
	return true;
}

bool relay_order_cancel(struct relay *relay, const struct call *call)
{
	struct gate *gate = find(relay, call);
	return gate && desk_cancel_prompts(&relay->desk,
			       (struct desk_pick){STAGE_ORDER, NULL, gate->session_id});
}

void relay_order_finish(struct relay *relay)
{
	LIST_FOR_EACH(gate, gates_of(relay), struct gate, link) {
		gate_destroy(gate);
	}
}
