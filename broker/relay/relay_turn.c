/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/relay/mode_gate.h"
#include "broker/relay/relay_agent.h"
#include "broker/relay/relay_editor.h"
#include "broker/relay/relay_order.h"
#include "broker/relay/relay_sync.h"
#include "broker/session/answer.h"

/* A prompt that waits for the sync before it, or an answer for the one after it. */
struct turn {
	struct list link; // peer.turns
	struct peer *peer;
	struct parcel *parcel;   // owned; NULL once it was answered
	size_t size;             // of what is in it
	char *session_id;        // owned; as the editor knows it
	char *id;                // owned; raw, of a prompt: for an answer without the message
	struct request *request; // owned; of an answer; NULL: it is a prompt
	bool is_counted;         // in peer.held_bytes
	bool is_answered;        // a prompt: it was cancelled, and the sync goes on
	struct sync_show show;
	struct list followers; // of struct follower: what the agent said after the answer
};

/* A message of the agent's. */
struct follower {
	struct list link; // turn.followers
	struct parcel *parcel;
	size_t size;
	char *id; // owned; raw, of a request; else NULL
};

struct sync_show *relay_turn_show(struct peer *peer, const void *asker)
{
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		if (turn == asker) {
			return &turn->show;
		}
	}
	return NULL;
}

/* ---- life ---- */

static void follower_destroy(struct peer *peer, struct follower *follower)
{
	list_remove(&follower->link);
	peer->held_bytes -= follower->size;
	parcel_destroy(follower->parcel);
	free(follower->id);
	free(follower);
}

static void turn_destroy(struct turn *turn)
{
	list_remove(&turn->link);
	ev_timer_stop(turn->peer->relay->config.loop, &turn->show.moment);
	LIST_FOR_EACH(follower, &turn->followers, struct follower, link) {
		follower_destroy(turn->peer, follower);
	}
	turn->peer->held_bytes -= turn->is_counted ? turn->size : 0;
	parcel_destroy(turn->parcel);
	if (turn->request) {
		request_destroy(turn->request);
	}
	free(turn->session_id);
	free(turn->id);
	free(turn);
}

static void turn_fail(struct turn *turn, const struct failure *failure)
{
	struct relay *relay = turn->peer->relay;
	struct request *request = turn->request;
	turn->request = NULL;
	if (request) {
		relay_fail_request(relay, request, failure);
	} else {
		relay_fail(relay, span_of(turn->id), failure);
	}
	turn_destroy(turn);
}

void relay_turn_finish_all(struct peer *peer, const struct failure *failure)
{
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		sync_show_leave(&turn->show, failure->message);
		if (turn->is_answered) {
			turn_destroy(turn);
		} else {
			turn_fail(turn, failure);
		}
	}
}

/* ---- before a prompt, and before its answer ---- */

static bool syncs_turns(const struct peer *peer)
{
	return peer->keeper && peer->relay->config.profile->sync.mode == SYNC_MODE_TURN;
}

static void pass_followers(struct turn *turn)
{
	struct follower *follower;
	while ((follower = LIST_FIRST(&turn->followers, struct follower, link))) {
		struct call call;
		// NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed was taken out before
		if (relay_open_parcel(follower->parcel, &call)) {
			relay_on_agent_call(turn->peer, &call);
		}
		follower_destroy(turn->peer, follower);
	}
}

void relay_turn_forget_requests(struct peer *peer)
{
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		LIST_FOR_EACH(follower, &turn->followers, struct follower, link) {
			if (follower->id) {
				follower_destroy(peer, follower);
			}
		}
	}
}

/* The workspaces are in step: what waited goes on. */
static void turn_pass(struct turn *turn)
{
	struct call call;
	struct peer *peer = turn->peer;
	struct request *request = turn->request;
	turn->request = NULL;
	if (relay_open_parcel(turn->parcel, &call)) {
		call.was_synced = true;
		if (request) {
			relay_pass_response(peer->relay, request, &call);
		} else if (!mode_gate_holds(peer->relay, &call)) { // it may have changed since
			relay_pass_editor_request(peer, &call);
			relay_order_look(peer->relay);
		}
	}
	pass_followers(turn);
	turn_destroy(turn);
	link_resume(agent_link(peer->agent));
}

/* What the person does about it stands with the reason. */
static void turn_refuse(struct turn *turn, const struct error *err)
{
	char text[ERROR_TEXT_MAX + 100];
	snprintf(text, sizeof(text),
		"%s; the prompt was not sent: send it again once that is put right", err->text);
	turn_fail(turn, &(struct failure){failure_code_of(err), "sync", text, {NULL, 0}});
}

static void on_turn_synced(void *data, const struct error *err)
{
	struct turn *turn = data;
	sync_show_end(&turn->show);
	if (turn->is_answered) {
		turn_destroy(turn);
	} else if (err && !turn->request) {
		turn_refuse(turn, err);
	} else {
		turn_pass(turn); // what failed after a prompt has been said
	}
}

static struct turn *turn_begin(struct peer *peer, const struct call *call, const char *session_id)
{
	struct turn *turn = mem_alloc_zero(sizeof(*turn));
	turn->peer = peer;
	turn->parcel = parcel_create(call->from, call->frame, peer->relay->places);
	turn->size = parcel_size(turn->parcel);
	list_init(&turn->followers);
	turn->session_id = mem_strdup(session_id);
	relay_sync_note_session(peer, session_id);
	list_append(&peer->turns, &turn->link);
	sync_show_begin(&turn->show, peer->relay, turn->session_id);
	const struct session *session = session_find(&peer->relay->sessions, session_id);
	keeper_sync(peer->keeper, session ? session->roots : NULL,
		&(struct sync_order){.reason = SYNC_REASON_TURN,
			.session = session_id,
			.deletions = SYNC_DELETIONS_ASK},
		on_turn_synced, turn);
	return turn;
}

/* Whether one more prompt may wait; otherwise it is answered. */
static bool has_room(struct peer *peer, const struct call *call)
{
	struct backlog backlog = {
		.stage = "sync", .what = "prompts", .that = "the workspace to be synced"};
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		backlog.bytes += turn->parcel ? turn->size : 0;
		backlog.count++;
	}
	return relay_admits(peer->relay, call, &backlog);
}

bool relay_turn_holds_prompt(struct peer *peer, const struct call *call)
{
	struct session *session = relay_session_of(peer->relay, &call->message);
	if (call->was_synced || !session || strcmp(call->message.method, "session/prompt") != 0) {
		return false;
	}
	if (peer->is_rolling_back) {
		relay_fail(peer->relay, call->message.id,
			&(struct failure){"ROLLBACK_IN_PROGRESS", "sync",
				"the workspace is being rolled back; prompt again after it",
				{NULL, 0}});
		return true;
	}
	if (!syncs_turns(peer)) {
		return false;
	}
	if (has_room(peer, call)) {
		char *id = mem_strndup(call->message.id); // the parcel may take the bytes
		turn_begin(peer, call, session->id)->id = id;
		relay_order_begin_prompt(peer->relay, session);
	}
	return true;
}

bool relay_turn_holds_answer(struct request *request, const struct call *call)
{
	const struct method *method = request->method;
	if (call->was_synced || !request->session_id || !syncs_turns(request->peer) || !method ||
		!method->name || strcmp(method->name, "session/prompt") != 0) {
		return false;
	}
	struct turn *turn = turn_begin(request->peer, call, request->session_id);
	turn->request = request;
	turn->is_counted = true;
	turn->peer->held_bytes += turn->size;
	return true;
}

bool relay_turn_is_full(const struct peer *peer)
{
	return peer->held_bytes > peer->relay->config.profile->max_queue;
}

static bool has_follower(const struct turn *turn, struct span id)
{
	LIST_FOR_EACH(follower, &turn->followers, struct follower, link) {
		if (follower->id && span_equals(span_of(follower->id), id)) {
			return true;
		}
	}
	return false;
}

/* The turn whose answer the message has to come after; NULL: none. */
static struct turn *turn_before(struct peer *peer, const struct message *message)
{
	struct turn *found = NULL;
	const struct session *session = relay_session_of_agent(peer, message);
	bool takes_back = strcmp(message->method, "$/cancel_request") == 0;
	struct span taken_id = message_place(message, PLACE_REQUEST_ID);
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		bool is_of_it = takes_back ? has_follower(turn, taken_id)
		                           : session && turn->request &&
		                                     strcmp(turn->session_id, session->id) == 0;
		found = is_of_it ? turn : found;
	}
	return found;
}

bool relay_turn_holds_message(struct peer *peer, const struct call *call)
{
	struct turn *answer = peer->held_bytes > 0 ? turn_before(peer, &call->message) : NULL;
	if (!answer) {
		return false;
	}
	struct follower *follower = mem_alloc_zero(sizeof(*follower));
	bool is_request = call->message.kind == MESSAGE_REQUEST;
	follower->id = is_request ? mem_strndup(call->message.id) : NULL; // before it is taken
	follower->parcel = parcel_create(call->from, call->frame, peer->relay->places);
	follower->size = parcel_size(follower->parcel);
	peer->held_bytes += follower->size;
	list_append(&answer->followers, &follower->link);
	return true;
}

/* ---- prompts that need not wait any longer ---- */

static bool is_waiting_prompt(const struct turn *turn, const struct session *session)
{
	return !turn->request && !turn->is_answered &&
	       (!session || strcmp(turn->session_id, session->id) == 0);
}

bool relay_turn_has_prompt(const struct peer *peer, const struct session *session)
{
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		if (is_waiting_prompt(turn, session)) {
			return true;
		}
	}
	return false;
}

/* The sync goes on, and with it the turn. */
static void turn_leave(struct turn *turn, const char *reason)
{
	sync_show_leave(&turn->show, reason);
	turn->is_answered = true;
	parcel_destroy(turn->parcel);
	turn->parcel = NULL;
}

static void turn_cancel(struct turn *turn)
{
	turn_leave(turn, "Syncing workspace: the prompt was cancelled");
	relay_answer(turn->peer->relay, span_of(turn->id),
		SPAN_LITERAL("{\"stopReason\":\"cancelled\"}"));
}

bool relay_turn_cancel(struct peer *peer, const struct session *session)
{
	bool has_cancelled = false;
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		if (is_waiting_prompt(turn, session)) {
			turn_cancel(turn);
			has_cancelled = true;
		}
	}
	return has_cancelled;
}

bool relay_turn_cancel_request(struct peer *peer, struct span id)
{
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		if (is_waiting_prompt(turn, NULL) && span_equals(span_of(turn->id), id)) {
			turn_cancel(turn);
			return true;
		}
	}
	return false;
}

void relay_turn_fail_prompts(struct peer *peer, const struct failure *failure)
{
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		if (is_waiting_prompt(turn, NULL)) {
			turn_leave(turn, failure->message);
			relay_fail(peer->relay, span_of(turn->id), failure);
		}
	}
}
