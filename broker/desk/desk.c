/* SPDX-License-Identifier: MIT */
#include "broker/desk/desk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "broker/desk/parcel.h"

static const char turn_cancelled[] = "{\"stopReason\":\"cancelled\"}";

const struct error desk_unreadable = {.code = ERROR_SYSTEM,
	.stage = "relay",
	.text = "the message had to wait, and then could not be read again"};

void desk_init(struct desk *desk, const struct stage_row *rows, const struct json_places *places,
	const struct desk_ops *ops, void *data)
{
	*desk = (struct desk){.rows = rows, .ops = ops, .data = data, .places = places};
	for (int stage = 0; stage < STAGES; stage++) {
		list_init(&desk->stages[stage]);
	}
}

static void enter(struct waiting *waiting)
{
	struct desk *desk = waiting->desk;
	waiting->size = parcel_size(waiting->parcel);
	desk->bytes[waiting->stage] += waiting->size;
	list_append(&desk->stages[waiting->stage], &waiting->link);
}

/* The message no longer counts at its stage. */
static void leave(struct waiting *waiting)
{
	waiting->desk->bytes[waiting->stage] -= waiting->size;
	waiting->size = 0;
}

struct waiting *desk_hold(struct desk *desk, struct waiting *waiting, enum desk_stage stage,
	struct peer *peer, const struct call *call)
{
	char session_id[MESSAGE_SESSION_ID_MAX + 1];
	const struct message *message = &call->message;
	bool is_kept = !waiting;
	waiting = waiting ? waiting : mem_alloc_zero(sizeof(*waiting));
	waiting->desk = desk;
	waiting->stage = stage;
	waiting->sender = call->sender;
	waiting->peer = peer;
	waiting->is_kept = is_kept;
	if (message->kind == MESSAGE_REQUEST) {
		waiting->id = mem_strndup(message->id);
	}
	waiting->is_prompt = desk->ops->is_prompt(call);
	if (message_string(message, PLACE_SESSION_ID, session_id, sizeof(session_id))) {
		waiting->session_id = mem_strdup(session_id);
	}
	waiting->parcel = call_set_aside(call, desk->places); // takes the bytes
	enter(waiting);
	return waiting;
}

bool desk_has_room(const struct desk *desk, enum desk_stage stage, const struct call *call)
{
	size_t size = call->frame->bytes.len + PARCEL_OVERHEAD;
	return desk->bytes[stage] + size <= desk->rows[stage].most;
}

void desk_refuse(struct desk *desk, const struct call *call, const struct error *failure)
{
	if (call->message.kind == MESSAGE_REQUEST) {
		const struct asker asker = {call->sender, call->method, call->message.id};
		desk->ops->fail(desk->data, &asker, failure);
	}
}

void desk_release(struct waiting *waiting)
{
	list_remove(&waiting->link);
	leave(waiting);
}

struct waiting *desk_detach(struct waiting *waiting)
{
	desk_release(waiting);
	if (waiting->is_kept) {
		return waiting;
	}
	struct waiting *own = mem_alloc_zero(sizeof(*own));
	*own = *waiting;
	own->is_kept = true;
	list_init(&own->link);
	*waiting = (struct waiting){.desk = NULL};
	return own;
}

void desk_move(struct waiting *waiting, enum desk_stage stage, struct peer *peer)
{
	struct waiting *moved = desk_detach(waiting);
	moved->stage = stage;
	moved->peer = peer;
	enter(moved);
}

static struct asker asker_of(const struct waiting *waiting, const char *id)
{
	return (struct asker){waiting->sender, parcel_method(waiting->parcel), span_of(id)};
}

bool desk_read(struct waiting *waiting, struct call *out_call)
{
	assert(waiting->parcel);
	*out_call = (struct call){.came_from = waiting->stage, .sender = waiting->sender};
	if (call_open(out_call, waiting->parcel)) {
		return true;
	}
	char *id = waiting->id;
	waiting->id = NULL;
	if (id) {
		const struct asker asker = asker_of(waiting, id);
		waiting->desk->ops->fail(waiting->desk->data, &asker, &desk_unreadable);
	}
	free(id);
	return false;
}

bool desk_open(struct waiting *waiting, struct call *out_call)
{
	desk_release(waiting);
	return desk_read(waiting, out_call);
}

void desk_drop(struct waiting *waiting)
{
	if (!waiting->desk) {
		return;
	}
	desk_release(waiting);
	parcel_destroy(waiting->parcel);
	free(waiting->session_id);
	free(waiting->id);
	if (waiting->is_kept) {
		free(waiting);
		return;
	}
	*waiting = (struct waiting){.desk = NULL};
}

/* ---- what waits ---- */

static bool is_picked(const struct waiting *waiting, struct desk_pick pick)
{
	return (!pick.peer || waiting->peer == pick.peer) &&
	       (!pick.session_id ||
		       (waiting->session_id && strcmp(waiting->session_id, pick.session_id) == 0));
}

static bool is_any(const struct waiting *waiting)
{
	return true;
}

static bool is_waiting(const struct waiting *waiting)
{
	return waiting->parcel != NULL;
}

static bool is_waiting_prompt(const struct waiting *waiting)
{
	return waiting->parcel && waiting->is_prompt;
}

static struct waiting *first_at(const struct desk *desk, enum desk_stage stage,
	struct desk_pick pick, bool (*is_wanted)(const struct waiting *waiting))
{
	LIST_FOR_EACH(waiting, &desk->stages[stage], struct waiting, link) {
		if (is_wanted(waiting) && is_picked(waiting, pick)) {
			return waiting;
		}
	}
	return NULL;
}

/* Searches all stages in order if the pick names none. */
static struct waiting *first(const struct desk *desk, struct desk_pick pick,
	bool (*is_wanted)(const struct waiting *waiting))
{
	struct waiting *found = NULL;
	if (pick.stage != STAGE_NONE) {
		return first_at(desk, pick.stage, pick, is_wanted);
	}
	for (int stage = 0; !found && stage < STAGES; stage++) {
		found = first_at(desk, (enum desk_stage)stage, pick, is_wanted);
	}
	return found;
}

struct waiting *desk_first(const struct desk *desk, struct desk_pick pick)
{
	return first(desk, pick, is_waiting);
}

struct waiting *desk_first_prompt(const struct desk *desk, struct desk_pick pick)
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
	LIST_FOR_EACH(waiting, &desk->stages[pick.stage], struct waiting, link) {
		if (waiting->parcel && is_picked(waiting, pick)) {
			load.count++;
			load.bytes += waiting->size;
		}
	}
	return load;
}

/* ---- messages that no longer need to wait ---- */

/*
 * Calls the owner first, because an answer may lead back to it. Without a failure the message was
 * cancelled.
 */
static void settle(struct waiting *waiting, const struct error *failure, bool is_turn)
{
	struct desk *desk = waiting->desk;
	const struct stage_row *row = &desk->rows[waiting->stage];
	char *id = waiting->id;
	const struct asker asker = asker_of(waiting, id ? id : "");
	leave(waiting);
	parcel_destroy(waiting->parcel);
	waiting->parcel = NULL;
	waiting->id = NULL;
	if (waiting->is_kept) {
		desk_drop(waiting);
	} else if (row->on_left) {
		row->on_left(waiting, failure);
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

static bool is_turn(const struct waiting *waiting)
{
	return waiting->is_prompt && waiting->desk->rows[waiting->stage].is_turn;
}

void desk_fail(struct waiting *waiting, const struct error *failure)
{
	settle(waiting, failure, false);
}

void desk_fail_all(struct desk *desk, struct desk_pick pick, const struct error *failure)
{
	struct waiting *waiting;
	while ((waiting = desk_first(desk, pick))) {
		settle(waiting, failure, false);
	}
}

static bool cancel(struct waiting *waiting)
{
	const struct stage_row *row = &waiting->desk->rows[waiting->stage];
	struct peer *peer = waiting->peer;
	if (row->takes_cancel) {
		return row->takes_cancel(waiting);
	}
	settle(waiting, NULL, is_turn(waiting));
	if (row->on_cancelled) {
		row->on_cancelled(peer);
	}
	return true;
}

bool desk_cancel_request(struct desk *desk, const struct peer *sender, struct span id)
{
	for (int stage = 0; stage < STAGES; stage++) {
		LIST_FOR_EACH(waiting, &desk->stages[stage], struct waiting, link) {
			if (waiting->id && waiting->sender == sender &&
				span_equals(span_of(waiting->id), id)) {
				return cancel(waiting);
			}
		}
	}
	return false;
}

bool desk_cancel_prompts(struct desk *desk, struct desk_pick pick)
{
	struct waiting *waiting;
	bool has_any = false;
	while ((waiting = desk_first_prompt(desk, pick))) {
		settle(waiting, NULL, true);
		has_any = true;
	}
	return has_any;
}

void desk_end(struct desk *desk, const struct error *failure)
{
	for (int stage = STAGE_NONE + 1; stage < STAGES; stage++) {
		struct desk_pick pick = {.stage = (enum desk_stage)stage};
		struct waiting *waiting;
		while (!desk->rows[stage].outlasts && (waiting = desk_first(desk, pick))) {
			settle(waiting, is_turn(waiting) ? NULL : failure, true);
		}
	}
}

void desk_forget(struct desk *desk, struct desk_pick pick)
{
	struct waiting *waiting;
	while ((waiting = first(desk, pick, is_any))) {
		if (waiting->is_kept) {
			desk_drop(waiting);
		} else {
			assert(desk->rows[waiting->stage].on_gone);
			desk->rows[waiting->stage].on_gone(waiting);
		}
	}
}
