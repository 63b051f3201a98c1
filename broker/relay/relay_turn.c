/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/desk/parcel.h"
#include "broker/methods/sync_methods.h"
#include "broker/relay/mode_guard.h"
#include "broker/relay/relay_order.h"
#include "broker/relay/relay_sync.h"
#include "broker/relay/turn_words.h"
#include "broker/session/answer.h"

/* A prompt that waits for the sync before it, or an answer that waits for the sync after it. */
struct turn {
	struct waiting waiting; // without its message once it was answered; the sync goes on
	struct peer *peer;
	struct request *request; // owned; for an answer; NULL: a prompt
	char *session_id;        // owned; the editor's id
	struct sync_show show;
	size_t follower_bytes; // of the messages that wait behind it
	int followers;
};

/* A message of the agent behind an answer. */
struct follower {
	struct waiting waiting;
	struct turn *turn; // of the answer
	size_t size;       // its part of follower_bytes
};

static const enum desk_stage turn_stages[] = {STAGE_SYNC, STAGE_ANSWER};

struct sync_show *relay_turn_show(struct peer *peer, const void *asker)
{
	for (size_t i = 0; i < ARRAY_LENGTH(turn_stages); i++) {
		struct list *waiting_there = &peer->relay->desk.stages[turn_stages[i]];
		LIST_FOR_EACH(turn, waiting_there, struct turn, waiting.link) {
			if (turn == asker) {
				return &turn->show;
			}
		}
	}
	return NULL;
}

/* ---- life ---- */

static void follower_destroy(struct follower *follower)
{
	desk_drop(&follower->waiting);
	free(follower);
}

/* Nobody waits for it any more: the turn goes on without it. */
static void follower_leave(struct follower *follower)
{
	follower->turn->follower_bytes -= follower->size;
	follower->turn->followers--;
	follower_destroy(follower);
}

void relay_turn_on_follower_left(struct waiting *waiting, const struct error *failure)
{
	struct peer *peer = waiting->peer;
	follower_leave(CONTAINER_OF(waiting, struct follower, waiting));
	link_resume(agent_link(peer->agent)); // there may be room again
}

void relay_turn_on_follower_gone(struct waiting *waiting)
{
	follower_leave(CONTAINER_OF(waiting, struct follower, waiting));
}

/* Frees the remaining ones without an answer. */
static void turn_destroy(struct turn *turn)
{
	struct relay *relay = turn->peer->relay;
	ev_timer_stop(relay->config.loop, &turn->show.moment);
	LIST_FOR_EACH(follower, &relay->desk.stages[STAGE_BEHIND], struct follower, waiting.link) {
		if (follower->turn == turn) {
			follower_destroy(follower);
		}
	}
	desk_drop(&turn->waiting);
	if (turn->request) {
		request_destroy(turn->request);
	}
	free(turn->session_id);
	free(turn);
}

void relay_turn_on_gone(struct waiting *waiting)
{
	turn_destroy(CONTAINER_OF(waiting, struct turn, waiting));
}

static void fail_answer(struct turn *turn, const struct error *failure)
{
	struct request *request = turn->request;
	turn->request = NULL;
	relay_fail_request(turn->peer->relay, request, failure);
}

/* The sync goes on, and the turn with it. */
void relay_turn_on_left(struct waiting *waiting, const struct error *failure)
{
	struct turn *turn = CONTAINER_OF(waiting, struct turn, waiting);
	sync_show_leave(&turn->show,
		failure ? failure->text : "Syncing workspace: the prompt was cancelled");
	if (turn->request) {
		fail_answer(turn, failure);
	}
}

void relay_turn_finish_all(struct peer *peer, const struct error *failure)
{
	for (size_t i = 0; i < ARRAY_LENGTH(turn_stages); i++) {
		struct desk_pick mine = {turn_stages[i], peer, NULL};
		desk_fail_all(&peer->relay->desk, mine, failure);
		desk_forget(&peer->relay->desk, mine);
	}
}

/* ---- holding a prompt, and its answer ---- */

static bool syncs_turns(const struct peer *peer)
{
	return peer->keeper && peer->relay->config.profile->sync.mode == SYNC_MODE_TURN;
}

/*
 * In order. Each is taken off the desk before the first goes on, because that may change what
 * waits.
 */
static void pass_followers(struct turn *turn)
{
	struct list followers;
	struct follower *follower;
	list_init(&followers);
	LIST_FOR_EACH(
		at, &turn->peer->relay->desk.stages[STAGE_BEHIND], struct follower, waiting.link) {
		if (at->turn == turn) {
			desk_release(&at->waiting);
			list_append(&followers, &at->waiting.link);
		}
	}
	while ((follower = LIST_FIRST(&followers, struct follower, waiting.link))) {
		struct call call;
		if (desk_read(&follower->waiting, &call)) {
			turn->peer->relay->ops->on_agent_call(turn->peer, &call);
		}
		// NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list no longer has what was freed
		follower_destroy(follower);
	}
}

/*
 * Whether it is a request or a cancellation of one: the agent's next process may use the same ids.
 */
static bool is_of_request(const struct waiting *waiting)
{
	const struct method *method = parcel_method(waiting->parcel);
	return waiting->id || (method && method->means == MEANS_CANCEL_REQUEST);
}

void relay_turn_forget_requests(struct peer *peer)
{
	LIST_FOR_EACH(
		follower, &peer->relay->desk.stages[STAGE_BEHIND], struct follower, waiting.link) {
		if (follower->waiting.peer == peer && is_of_request(&follower->waiting)) {
			follower_leave(follower);
		}
	}
}

static void pass_answer(struct turn *turn)
{
	struct call call;
	if (!desk_open(&turn->waiting, &call)) {
		fail_answer(turn, &desk_unreadable);
		return;
	}
	struct request *request = turn->request;
	turn->request = NULL;
	turn->peer->relay->ops->pass_response(turn->peer->relay, request, &call);
}

static void pass_prompt(struct turn *turn)
{
	struct call call;
	struct peer *peer = turn->peer;
	if (desk_open(&turn->waiting, &call) &&
		!mode_guard_holds(peer->relay, &call)) { // the mode may have changed since
		peer->relay->ops->pass_editor_request(peer, &call);
		relay_order_look(peer->relay);
	}
}

/* The workspaces are in step: the waiting message goes on. */
static void turn_pass(struct turn *turn)
{
	struct peer *peer = turn->peer;
	(turn->request ? pass_answer : pass_prompt)(turn);
	pass_followers(turn);
	turn_destroy(turn);
	link_resume(agent_link(peer->agent));
}

/* The error's text says what the user can do. */
static void turn_refuse(struct turn *turn, const struct error *err)
{
	struct error failure;
	error_set_reason(&failure, err->code, err->reason,
		"%s; the prompt was not sent: send it again after correcting that", err->text);
	desk_fail(&turn->waiting, error_at(&failure, "sync"));
	turn_destroy(turn);
}

/*
 * If the sandbox is full, only the agent can free space there: the agent is told, and the prompt
 * goes on.
 */
static void on_turn_synced(void *data, const struct error *err)
{
	struct turn *turn = data;
	sync_show_end(&turn->show);
	if (!turn->waiting.parcel) {
		turn_destroy(turn);
	} else if (err && !turn->request && !error_has_reason(err, "DISK_FULL")) {
		turn_refuse(turn, err);
	} else {
		turn_pass(turn); // a failure after a prompt has been reported
	}
}

static struct turn *turn_create(struct peer *peer, const char *session_id)
{
	struct turn *turn = mem_alloc_zero(sizeof(*turn));
	turn->peer = peer;
	turn->session_id = mem_strdup(session_id);
	return turn;
}

static void turn_begin(struct turn *turn)
{
	struct peer *peer = turn->peer;
	relay_sync_note_session(peer, turn->session_id);
	sync_show_begin(&turn->show, peer->relay, turn->session_id);
	const struct session *session = session_find(&peer->relay->sessions, turn->session_id);
	struct sync_order order = {.reason = SYNC_REASON_TURN,
		.session = turn->session_id,
		.turn = turn->request ? SYNC_AFTER_TURN : SYNC_BEFORE_TURN,
		.deletions = SYNC_DELETIONS_ASK};
	if (session) {
		order.name = turn->request ? session->words : NULL;
		order.turn_least = session->usage.prompts + (turn->request ? 0 : 1);
	}
	keeper_sync(peer->keeper, session ? session->roots : NULL, &order, on_turn_synced, turn);
}

bool relay_turn_holds_prompt(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	struct session *session = relay_session_of(relay, &call->message);
	if (call->came_from == STAGE_SYNC || !session) {
		return false;
	}
	if (sync_methods_is_rolling_back(peer)) {
		struct error err;
		relay_fail(relay, call->message.id,
			failure_set(&err, "ROLLBACK_IN_PROGRESS", "sync",
				"the workspace is being rolled back; prompt again when that is "
				"done"));
		return true;
	}
	if (!syncs_turns(peer)) {
		return false;
	}
	if (relay_admits_at(relay, call, (struct desk_pick){STAGE_SYNC, peer, NULL})) {
		struct turn *turn = turn_create(peer, session->id);
		turn_words_note(session, call);
		desk_hold(&relay->desk, &turn->waiting, STAGE_SYNC, peer, call);
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
	turn->request = request;
	desk_hold(&peer->relay->desk, &turn->waiting, STAGE_ANSWER, peer, call);
	turn_begin(turn);
	return true;
}

/* An agent has few waiting turns, but may have many followers. */
bool relay_turn_is_full(const struct peer *peer)
{
	const struct desk *desk = &peer->relay->desk;
	const struct profile *profile = peer->relay->config.profile;
	size_t bytes = 0;
	int followers = 0;
	LIST_FOR_EACH(turn, &desk->stages[STAGE_ANSWER], struct turn, waiting.link) {
		bool is_of_it = turn->peer == peer;
		bytes += is_of_it ? turn->waiting.size + turn->follower_bytes : 0;
		followers += is_of_it ? turn->followers : 0;
	}
	return bytes > profile->max_queue || followers >= profile->max_requests;
}

/* The turn whose answer this request of the agent waits for; or NULL. */
static struct turn *turn_of_follower(const struct peer *peer, struct span id)
{
	struct turn *found = NULL;
	LIST_FOR_EACH(
		follower, &peer->relay->desk.stages[STAGE_BEHIND], struct follower, waiting.link) {
		const struct waiting *waiting = &follower->waiting;
		bool is_it = waiting->peer == peer && waiting->id &&
		             span_equals(span_of(waiting->id), id);
		found = is_it ? follower->turn : found;
	}
	return found;
}

static struct turn *turn_of_session(const struct peer *peer, const struct session *session)
{
	struct turn *found = NULL;
	LIST_FOR_EACH(turn, &peer->relay->desk.stages[STAGE_ANSWER], struct turn, waiting.link) {
		bool is_it = turn->peer == peer && strcmp(turn->session_id, session->id) == 0;
		found = is_it ? turn : found;
	}
	return found;
}

/* The turn whose answer must go before this message; or NULL. */
static struct turn *turn_before(struct peer *peer, const struct call *call)
{
	if (call->method->means == MEANS_CANCEL_REQUEST) {
		return turn_of_follower(peer, message_place(&call->message, PLACE_REQUEST_ID));
	}
	const struct session *session = relay_session_of_agent(peer, &call->message);
	return session ? turn_of_session(peer, session) : NULL;
}

bool relay_turn_holds_message(struct peer *peer, const struct call *call)
{
	struct desk *desk = &peer->relay->desk;
	struct turn *turn = desk->bytes[STAGE_ANSWER] > 0 ? turn_before(peer, call) : NULL;
	if (!turn) {
		return false;
	}
	struct follower *follower = mem_alloc_zero(sizeof(*follower));
	follower->turn = turn;
	desk_hold(desk, &follower->waiting, STAGE_BEHIND, peer, call);
	follower->size = follower->waiting.size;
	turn->follower_bytes += follower->size;
	turn->followers++;
	return true;
}

/* ---- prompts that no longer need to wait ---- */

static struct desk_pick prompts_of(const struct peer *peer, const struct session *session)
{
	return (struct desk_pick){STAGE_SYNC, peer, session ? session->id : NULL};
}

bool relay_turn_has_prompt(const struct peer *peer, const struct session *session)
{
	return desk_first(&peer->relay->desk, prompts_of(peer, session)) != NULL;
}

bool relay_turn_is_open(const struct peer *peer, const struct session *session)
{
	return session->prompts > 0 || relay_turn_has_prompt(peer, session) ||
	       turn_of_session(peer, session);
}

bool relay_turn_cancel(struct peer *peer, const struct session *session)
{
	return desk_cancel_prompts(&peer->relay->desk, prompts_of(peer, session));
}
