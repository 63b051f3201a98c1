/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/relay/mode_guard.h"
#include "broker/relay/relay_agent.h"
#include "broker/relay/relay_editor.h"
#include "broker/relay/relay_stages.h"
#include "broker/relay/relay_order.h"
#include "broker/relay/relay_sync.h"
#include "broker/session/answer.h"

/* A prompt that waits for the sync before it, or an answer for the one after it. */
struct turn {
	struct list link; // peer.turns
	struct peer *peer;
	struct held prompt;      // without its message once it was answered; the sync goes on
	struct request *request; // owned; of an answer; NULL: it is a prompt
	struct parcel *answer;   // owned; the answer
	size_t size;             // of that, in peer.held_bytes
	char *session_id;        // owned; as the editor knows it
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
	turn->peer->held_bytes -= turn->size;
	desk_drop(&turn->prompt);
	parcel_destroy(turn->answer);
	if (turn->request) {
		request_destroy(turn->request);
	}
	free(turn->session_id);
	free(turn);
}

static void turn_fail(struct turn *turn, const struct error *failure)
{
	struct request *request = turn->request;
	turn->request = NULL;
	if (request) {
		relay_fail_request(turn->peer->relay, request, failure);
	} else {
		desk_fail(&turn->prompt, failure);
	}
	turn_destroy(turn);
}

static bool is_answered(const struct turn *turn)
{
	return !turn->request && !turn->prompt.parcel;
}

void relay_turn_finish_all(struct peer *peer, const struct error *failure)
{
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		sync_show_leave(&turn->show, failure->text);
		if (is_answered(turn)) {
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
		struct call call = {.came_from = STAGE_SYNC};
		// NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed was taken out before
		if (call_open(&call, follower->parcel)) {
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

static void pass_answer(struct turn *turn)
{
	struct call call = {.came_from = STAGE_SYNC};
	struct request *request = turn->request;
	turn->request = NULL;
	if (call_open(&call, turn->answer)) {
		relay_pass_response(turn->peer->relay, request, &call);
	}
}

static void pass_prompt(struct turn *turn)
{
	struct call call;
	struct peer *peer = turn->peer;
	if (desk_open(&turn->prompt, &call) &&
		!mode_guard_holds(peer->relay, &call)) { // it may have changed since
		relay_pass_editor_request(peer, &call);
		relay_order_look(peer->relay);
	}
}

/* The workspaces are in step: what waited goes on. */
static void turn_pass(struct turn *turn)
{
	struct peer *peer = turn->peer;
	(turn->request ? pass_answer : pass_prompt)(turn);
	pass_followers(turn);
	turn_destroy(turn);
	link_resume(agent_link(peer->agent));
}

/* What the person does about it stands with the reason. */
static void turn_refuse(struct turn *turn, const struct error *err)
{
	struct error failure;
	error_set_reason(&failure, err->code, err->reason,
		"%s; the prompt was not sent: send it again once that is put right", err->text);
	turn_fail(turn, error_at(&failure, "sync"));
}

static void on_turn_synced(void *data, const struct error *err)
{
	struct turn *turn = data;
	sync_show_end(&turn->show);
	if (is_answered(turn)) {
		turn_destroy(turn);
	} else if (err && !turn->request) {
		turn_refuse(turn, err);
	} else {
		turn_pass(turn); // what failed after a prompt has been said
	}
}

static struct turn *turn_create(struct peer *peer, const char *session_id)
{
	struct turn *turn = mem_alloc_zero(sizeof(*turn));
	turn->peer = peer;
	list_init(&turn->followers);
	turn->session_id = mem_strdup(session_id);
	list_append(&peer->turns, &turn->link);
	return turn;
}

static void turn_begin(struct turn *turn)
{
	struct peer *peer = turn->peer;
	relay_sync_note_session(peer, turn->session_id);
	sync_show_begin(&turn->show, peer->relay, turn->session_id);
	const struct session *session = session_find(&peer->relay->sessions, turn->session_id);
	keeper_sync(peer->keeper, session ? session->roots : NULL,
		&(struct sync_order){.reason = SYNC_REASON_TURN,
			.session = turn->session_id,
			.deletions = SYNC_DELETIONS_ASK},
		on_turn_synced, turn);
}

bool relay_turn_holds_prompt(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	struct session *session = relay_session_of(relay, &call->message);
	if (call->came_from == STAGE_SYNC || !session) {
		return false;
	}
	if (peer->is_rolling_back) {
		struct error err;
		relay_fail(relay, call->message.id,
			failure_set(&err, "ROLLBACK_IN_PROGRESS", "sync",
				"the workspace is being rolled back; prompt again after it"));
		return true;
	}
	if (!syncs_turns(peer)) {
		return false;
	}
	if (relay_admits_at(relay, call, (struct desk_pick){STAGE_SYNC, peer, NULL})) {
		struct turn *turn = turn_create(peer, session->id);
		desk_hold(&relay->desk, &turn->prompt, STAGE_SYNC, peer, call);
		turn_begin(turn);
		relay_order_begin_prompt(relay, session);
	}
	return true;
}

bool relay_turn_holds_answer(struct request *request, const struct call *call)
{
	struct peer *peer = request->peer;
	if (call->came_from == STAGE_SYNC || !request->session_id || !syncs_turns(peer)) {
		return false;
	}
	struct turn *turn = turn_create(peer, request->session_id);
	turn->answer = call_set_aside(call, peer->relay->places);
	turn->size = parcel_size(turn->answer);
	peer->held_bytes += turn->size;
	turn->request = request;
	turn_begin(turn);
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
static struct turn *turn_before(struct peer *peer, const struct call *call)
{
	struct turn *found = NULL;
	const struct session *session = relay_session_of_agent(peer, &call->message);
	bool takes_back = call->method->means == MEANS_CANCEL_REQUEST;
	struct span taken_id = message_place(&call->message, PLACE_REQUEST_ID);
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
	struct turn *answer = peer->held_bytes > 0 ? turn_before(peer, call) : NULL;
	if (!answer) {
		return false;
	}
	struct follower *follower = mem_alloc_zero(sizeof(*follower));
	bool is_request = call->message.kind == MESSAGE_REQUEST;
	follower->id = is_request ? mem_strndup(call->message.id) : NULL; // before it is taken
	follower->parcel = call_set_aside(call, peer->relay->places);
	follower->size = parcel_size(follower->parcel);
	peer->held_bytes += follower->size;
	list_append(&answer->followers, &follower->link);
	return true;
}

/* ---- prompts that need not wait any longer ---- */

static struct desk_pick prompts_of(const struct peer *peer, const struct session *session)
{
	return (struct desk_pick){STAGE_SYNC, peer, session ? session->id : NULL};
}

bool relay_turn_has_prompt(const struct peer *peer, const struct session *session)
{
	return desk_first(&peer->relay->desk, prompts_of(peer, session)) != NULL;
}

/* The sync goes on, and with it the turn. */
void relay_turn_on_left(struct held *held, const struct error *failure)
{
	struct turn *turn = CONTAINER_OF(held, struct turn, prompt);
	sync_show_leave(&turn->show,
		failure ? failure->text : "Syncing workspace: the prompt was cancelled");
}

bool relay_turn_cancel(struct peer *peer, const struct session *session)
{
	return desk_cancel_prompts(&peer->relay->desk, prompts_of(peer, session));
}
