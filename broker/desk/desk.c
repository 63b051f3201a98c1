/* SPDX-License-Identifier: MIT */
#include "broker/desk/desk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "broker/desk/parcel.h"

static const char turn_cancelled[] = "{\"stopReason\":\"cancelled\"}";

const struct error desk_unreadable = {.code = ERROR_SYSTEM,
	.stage = "relay",
	.text = "the message had to wait, and cannot be read again"};

void desk_init(struct desk *desk, const struct stage_row *rows, const struct json_places *places,
	const struct desk_ops *ops, void *data)
{
	*desk = (struct desk){.rows = rows, .ops = ops, .data = data, .places = places};
	for (int stage = 0; stage < STAGES; stage++) {
		list_init(&desk->stages[stage]);
	}
}

static void enter(struct held *held)
{
	struct desk *desk = held->desk;
	held->size = parcel_size(held->parcel);
	desk->bytes[held->stage] += held->size;
	list_append(&desk->stages[held->stage], &held->link);
}

/* Its message does not wait any more. */
static void leave(struct held *held)
{
	held->desk->bytes[held->stage] -= held->size;
	held->size = 0;
}

struct held *desk_hold(struct desk *desk, struct held *held, enum desk_stage stage,
	struct peer *peer, const struct call *call)
{
	char session_id[MESSAGE_SESSION_ID_MAX + 1];
	const struct message *message = &call->message;
	bool is_kept = !held;
	held = held ? held : mem_alloc_zero(sizeof(*held));
	held->desk = desk;
	held->stage = stage;
	held->sender = call->sender;
	held->peer = peer;
	held->is_kept = is_kept;
	if (message->kind == MESSAGE_REQUEST) {
		held->id = mem_strndup(message->id);
	}
	held->is_prompt = desk->ops->is_prompt(call);
	if (message_string(message, PLACE_SESSION_ID, session_id, sizeof(session_id))) {
		held->session_id = mem_strdup(session_id);
	}
	held->parcel = call_set_aside(call, desk->places); // takes the bytes
	enter(held);
	return held;
}

bool desk_has_room(const struct desk *desk, enum desk_stage stage, const struct call *call)
{
	return desk->bytes[stage] + call->frame->bytes.len <= desk->rows[stage].most;
}

void desk_refuse(struct desk *desk, const struct call *call, const struct error *failure)
{
	if (call->message.kind == MESSAGE_REQUEST) {
		const struct asker asker = {call->sender, call->method, call->message.id};
		desk->ops->fail(desk->data, &asker, failure);
	}
}

void desk_release(struct held *held)
{
	list_remove(&held->link);
	leave(held);
}

struct held *desk_detach(struct held *held)
{
	desk_release(held);
	if (held->is_kept) {
		return held;
	}
	struct held *own = mem_alloc_zero(sizeof(*own));
	*own = *held;
	own->is_kept = true;
	list_init(&own->link);
	*held = (struct held){.desk = NULL};
	return own;
}

void desk_move(struct held *held, enum desk_stage stage, struct peer *peer)
{
	struct held *moved = desk_detach(held);
	moved->stage = stage;
	moved->peer = peer;
	enter(moved);
}

static struct asker asker_of(const struct held *held, const char *id)
{
	return (struct asker){held->sender, parcel_method(held->parcel), span_of(id)};
}

bool desk_read(struct held *held, struct call *out_call)
{
	assert(held->parcel);
	*out_call = (struct call){.came_from = held->stage, .sender = held->sender};
	if (call_open(out_call, held->parcel)) {
		return true;
	}
	char *id = held->id;
	held->id = NULL;
	if (id) {
		const struct asker asker = asker_of(held, id);
		held->desk->ops->fail(held->desk->data, &asker, &desk_unreadable);
	}
	free(id);
	return false;
}

bool desk_open(struct held *held, struct call *out_call)
{
	desk_release(held);
	return desk_read(held, out_call);
}

void desk_drop(struct held *held)
{
	if (!held->desk) {
		return;
	}
	desk_release(held);
	parcel_destroy(held->parcel);
	free(held->session_id);
	free(held->id);
	if (held->is_kept) {
		free(held);
		return;
	}
	*held = (struct held){.desk = NULL};
}

/* ---- what waits ---- */

static bool is_picked(const struct held *held, struct desk_pick pick)
{
	return (!pick.peer || held->peer == pick.peer) &&
	       (!pick.session_id ||
		       (held->session_id && strcmp(held->session_id, pick.session_id) == 0));
}

static bool is_any(const struct held *held)
{
	return true;
}

static bool is_waiting(const struct held *held)
{
	return held->parcel != NULL;
}

static bool is_waiting_prompt(const struct held *held)
{
	return held->parcel && held->is_prompt;
}

static struct held *first_at(const struct desk *desk, enum desk_stage stage, struct desk_pick pick,
	bool (*is_wanted)(const struct held *held))
{
	LIST_FOR_EACH(held, &desk->stages[stage], struct held, link) {
		if (is_wanted(held) && is_picked(held, pick)) {
			return held;
		}
	}
	return NULL;
}

/* At all stages, one after the other, where the pick names none. */
static struct held *first(
	const struct desk *desk, struct desk_pick pick, bool (*is_wanted)(const struct held *held))
{
	struct held *found = NULL;
	if (pick.stage != STAGE_NONE) {
		return first_at(desk, pick.stage, pick, is_wanted);
	}
	for (int stage = 0; !found && stage < STAGES; stage++) {
		found = first_at(desk, (enum desk_stage)stage, pick, is_wanted);
	}
	return found;
}

struct held *desk_first(const struct desk *desk, struct desk_pick pick)
{
	return first(desk, pick, is_waiting);
}

struct held *desk_first_prompt(const struct desk *desk, struct desk_pick pick)
{
	return first(desk, pick, is_waiting_prompt);
}

bool desk_has(const struct desk *desk, struct desk_pick pick)
{
	return first(desk, pick, is_any) != NULL;
}

struct desk_load desk_load(const struct desk *desk, struct desk_pick pick)
{
	struct desk_load load = {0, 0};
	LIST_FOR_EACH(held, &desk->stages[pick.stage], struct held, link) {
		if (held->parcel && is_picked(held, pick)) {
			load.count++;
			load.bytes += held->size;
		}
	}
	return load;
}

/* ---- what need not wait any longer ---- */

/* The owner first: an answer may lead back to it. Without a failure it was cancelled. */
static void settle(struct held *held, const struct error *failure, bool is_turn)
{
	struct desk *desk = held->desk;
	const struct stage_row *row = &desk->rows[held->stage];
	char *id = held->id;
	const struct asker asker = asker_of(held, id ? id : "");
	leave(held);
	parcel_destroy(held->parcel);
	held->parcel = NULL;
	held->id = NULL;
	if (held->is_kept) {
		desk_drop(held);
	} else if (row->on_left) {
		row->on_left(held, failure);
	}
	if (id && failure) {
		desk->ops->fail(desk->data, &asker, failure);
	} else if (id && is_turn) {
		desk->ops->answer(desk->data, asker.id, span_of(turn_cancelled));
	} else if (id) {
		desk->ops->answer_cancelled(desk->data, &asker);
	}
	free(id);
}

static bool is_turn(const struct held *held)
{
	return held->is_prompt && held->desk->rows[held->stage].is_turn;
}

void desk_fail(struct held *held, const struct error *failure)
{
	settle(held, failure, false);
}

void desk_fail_all(struct desk *desk, struct desk_pick pick, const struct error *failure)
{
	struct held *held;
	while ((held = desk_first(desk, pick))) {
		settle(held, failure, false);
	}
}

static bool cancel(struct held *held)
{
	const struct stage_row *row = &held->desk->rows[held->stage];
	struct peer *peer = held->peer;
	if (row->takes_cancel) {
		return row->takes_cancel(held);
	}
	settle(held, NULL, is_turn(held));
	if (row->on_cancelled) {
		row->on_cancelled(peer);
	}
	return true;
}

bool desk_cancel_request(struct desk *desk, const struct peer *sender, struct span id)
{
	for (int stage = 0; stage < STAGES; stage++) {
		LIST_FOR_EACH(held, &desk->stages[stage], struct held, link) {
			if (held->id && held->sender == sender &&
				span_equals(span_of(held->id), id)) {
				return cancel(held);
			}
		}
	}
	return false;
}

bool desk_cancel_prompts(struct desk *desk, struct desk_pick pick)
{
	struct held *held;
	bool has_any = false;
	while ((held = desk_first_prompt(desk, pick))) {
		settle(held, NULL, true);
		has_any = true;
	}
	return has_any;
}

void desk_end(struct desk *desk, const struct error *failure)
{
	for (int stage = STAGE_NONE + 1; stage < STAGES; stage++) {
		struct desk_pick pick = {.stage = (enum desk_stage)stage};
		struct held *held;
		while (!desk->rows[stage].outlasts && (held = desk_first(desk, pick))) {
			settle(held, is_turn(held) ? NULL : failure, true);
		}
	}
}

void desk_forget(struct desk *desk, struct desk_pick pick)
{
	struct held *held;
	while ((held = first(desk, pick, is_any))) {
		if (held->is_kept) {
			desk_drop(held);
		} else {
			assert(desk->rows[held->stage].on_gone);
			desk->rows[held->stage].on_gone(held);
		}
	}
}
