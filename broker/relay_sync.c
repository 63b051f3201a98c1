/* SPDX-License-Identifier: MIT */
#include "broker/relay_sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "broker/inquiry.h"
#include "broker/notice.h"
#include "broker/sync_text.h"

/* A prompt that waits for the sync before it, or an answer for the one after it. */
struct turn {
	struct list link; // peer.turns
	struct peer *peer;
	struct parcel *parcel;   // owned
	char *session_id;        // owned; as the editor knows it
	char *id;                // owned; raw, of a prompt: for an answer without the message
	struct request *request; // owned; of an answer; NULL: it is a prompt
	bool is_cancelled;
};

/* ---- what the person is told ---- */

static struct session *session_in_hand(struct peer *peer)
{
	struct turn *turn = LIST_FIRST(&peer->turns, struct turn, link);
	return turn ? session_find(&peer->relay->sessions, turn->session_id) : NULL;
}

static void on_ended(void *data, const char *local_root, const struct sync_result *result,
	const struct error *err)
{
	struct peer *peer = data;
	char text[SYNC_TEXT_MAX];
	bool is_news = sync_text_write(text, local_root, result, err);
	struct session *session = session_in_hand(peer);
	if (is_news && session) {
		notice_send(peer->relay, session, text, err != NULL);
	} else if (is_news) {
		log_warning("%s: %s", peer->hop, text);
		free(peer->unsaid);
		peer->unsaid = mem_strdup(text);
	} else {
		log_info("%s: %s", peer->hop, text);
	}
}

static const struct keeper_listener keeper_listener = {.on_ended = on_ended};

/* ---- life ---- */

void relay_sync_init(struct peer *peer)
{
	list_init(&peer->turns);
	list_init(&peer->inquiries);
}

static void turn_destroy(struct turn *turn)
{
	list_remove(&turn->link);
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

void relay_sync_finish(struct peer *peer, const struct failure *failure)
{
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		turn_fail(turn, failure);
	}
	inquiry_drop_all(peer, failure);
	keeper_destroy(peer->keeper);
	peer->keeper = NULL;
	free(peer->unsaid);
	peer->unsaid = NULL;
}

bool relay_needs_sync(const struct peer *peer)
{
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	const struct relay_config *config = &peer->relay->config;
	return sandbox && config->pool &&
	       (sandbox_capabilities(sandbox)->isolated || config->profile->sync.keeps_plain);
}

static struct keeper *keeper_of(struct peer *peer)
{
	const struct relay_config *config = &peer->relay->config;
	if (!peer->keeper) {
		peer->keeper = keeper_create(&(struct keeper_config){
			.loop = config->loop,
			.pool = config->pool,
			.sandbox = agent_sandbox(peer->agent),
			.settings = &config->profile->sync,
			.profile = config->profile->name,
			.backend = backend_name(config->profile->backend),
			.state_folder = config->state_folder ? config->state_folder : "",
			.home = config->home,
			.listener = &keeper_listener,
			.data = peer,
		});
	}
	return peer->keeper;
}

/* ---- a session is opened ---- */

bool relay_sync_open(struct peer *peer, sandbox_done *done, void *data)
{
	if (!relay_needs_sync(peer)) {
		return false;
	}
	keeper_open(keeper_of(peer), done, data);
	return true;
}

void relay_sync_add_session(struct peer *peer, const struct session *session)
{
	if (!peer->keeper) {
		return;
	}
	keeper_add_session(peer->keeper, session->agent_id);
	if (peer->unsaid) {
		notice_send(peer->relay, session, peer->unsaid, false);
		free(peer->unsaid);
		peer->unsaid = NULL;
	}
}

/* ---- a turn ---- */

static bool syncs_turns(const struct peer *peer)
{
	return peer->keeper && peer->relay->config.profile->sync.mode == SYNC_MODE_TURN;
}

static void turn_answer_cancelled(struct turn *turn)
{
	relay_answer(turn->peer->relay, span_of(turn->id),
		SPAN_LITERAL("{\"stopReason\":\"cancelled\"}"));
	turn_destroy(turn);
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
		splice_clear(&peer->relay->splice);
		if (request) {
			relay_pass_response(peer->relay, request, &call);
		} else {
			relay_pass_editor_request(peer, &call);
		}
	}
	turn_destroy(turn);
}

static void on_turn_synced(void *data, const struct error *err)
{
	struct peer *peer = data;
	struct turn *turn = LIST_FIRST(&peer->turns, struct turn, link);
	if (turn->is_cancelled) {
		turn_answer_cancelled(turn);
	} else if (err && !turn->request) {
		turn_fail(turn,
			&(struct failure){failure_code_of(err), "sync", err->text, {NULL, 0}});
	} else {
		turn_pass(turn); // what failed after a prompt has been said
	}
}

static struct turn *turn_begin(struct peer *peer, const struct call *call, const char *session_id)
{
	struct turn *turn = mem_alloc_zero(sizeof(*turn));
	turn->peer = peer;
	turn->parcel = parcel_create(call->from, call->frame, peer->relay->places);
	turn->session_id = mem_strdup(session_id);
	list_append(&peer->turns, &turn->link);
	keeper_sync(peer->keeper, NULL,
		&(struct sync_order){.reason = SYNC_REASON_TURN, .session = session_id},
		on_turn_synced, peer);
	return turn;
}

bool relay_sync_holds_prompt(struct peer *peer, const struct call *call)
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
	char *id = mem_strndup(call->message.id); // the parcel may take the bytes
	turn_begin(peer, call, session->id)->id = id;
	return true;
}

bool relay_sync_holds_answer(struct request *request, const struct call *call)
{
	const struct method *method = request->method;
	if (call->was_synced || !request->session_id || !syncs_turns(request->peer) || !method ||
		!method->name || strcmp(method->name, "session/prompt") != 0) {
		return false;
	}
	turn_begin(request->peer, call, request->session_id)->request = request;
	return true;
}

void relay_sync_cancel(struct peer *peer, const struct session *session)
{
	LIST_FOR_EACH(turn, &peer->turns, struct turn, link) {
		if (!turn->request && strcmp(turn->session_id, session->id) == 0) {
			turn->is_cancelled = true;
		}
	}
}

/* ---- the end ---- */

static void on_closed(void *data, const struct error *err)
{
	struct peer *peer = data;
	if (err) {
		log_error("%s: %s", peer->hop, err->text);
	}
	peer->is_collected = true;
	relay_peer_gone(peer);
}

bool relay_sync_close(struct peer *peer)
{
	if (!peer->keeper || peer->is_collected) {
		return false;
	}
	if (!peer->is_collecting) {
		peer->is_collecting = true;
		keeper_close(peer->keeper, on_closed, peer);
	}
	return true;
}
