/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_end.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "broker/gate/grant_resolve.h"
#include "broker/methods/health.h"
#include "broker/methods/pause.h"
#include "broker/relay/listing_records.h"
#include "broker/relay/relay.h"
#include "broker/relay/relay_claim.h"
#include "broker/relay/relay_leftovers.h"
#include "broker/relay/relay_mcp_exec.h"
#include "broker/relay/relay_order.h"
#include "broker/relay/relay_recover.h"
#include "broker/relay/relay_revive.h"
#include "broker/relay/relay_roots.h"
#include "broker/relay/relay_sync.h"
#include "broker/relay/relay_turn.h"
#include "broker/relay/restore.h"
#include "broker/session/answer.h"

#define AT_ONCE_S 0.001

/* The progress of the relay's end; a part of the relay. */
struct ending {
	struct relay *relay;
	struct ev_timer due;  // drain-timeout for the editor to read more of the last messages
	uint64_t written;     // to the editor, at the start of that deadline
	bool is_unread;       // the editor did not read them
	bool is_hurried;      // and we no longer wait for it
	bool has_served;      // an agent has answered initialize
	const char *no_start; // static; why an agent did not; or NULL
};

static const struct part_type type = {.size = sizeof(struct ending)};

static struct ending *ending_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

uint64_t relay_count_taken(void *data)
{
	const struct peer *peer = data;
	return link_written(&peer->relay->editor);
}

void relay_note_start(struct relay *relay, const char *failed_reason)
{
	struct ending *ending = ending_of(relay);
	ending->has_served = ending->has_served || !failed_reason;
	ending->no_start = failed_reason;
}

void relay_finish(struct relay *relay)
{
	if (!relay->is_finished) {
		struct ending *ending = ending_of(relay);
		relay->is_finished = true;
		ev_timer_stop(relay->config.loop, &ending->due);
		const struct error *failure = leftovers_error(leftovers_of(relay));
		struct error err;
		if (!failure && (failure = link_failure(&relay->editor)) != NULL) {
			err = *failure;
			error_prefix(&err, "the connection to the editor");
			failure = &err;
		} else if (!failure && ending->is_unread) {
			error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
				"the editor does not read: it has not taken its last messages "
				"within drain-timeout");
			failure = &err;
		} else if (!failure && ending->no_start && !ending->has_served &&
			   !relay->config.client_tells) {
			error_set_reason(&err, ERROR_UNAVAILABLE, ending->no_start,
				"no agent has started (%s): its error is above", ending->no_start);
			failure = &err;
		}
		relay->config.listener->on_finished(relay->config.data, failure);
	}
}

static void on_last_words_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct ending *ending = CONTAINER_OF(timer, struct ending, due);
	struct relay *relay = ending->relay;
	uint64_t written = link_written(&relay->editor);
	bool is_read = written != ending->written && !relay->editor.is_broken;
	if (is_read && !ending->is_hurried) {
		ending->written = written;
		ev_timer_again(loop, timer); // it still reads, slowly
		return;
	}
	ending->is_unread = link_queued(&relay->editor) > 0;
	if (ending->is_unread) {
		log_warning("editor: it does not read its messages; %zu bytes were not sent",
			link_queued(&relay->editor));
	}
	relay_finish(relay);
}

void relay_end_init(struct relay *relay)
{
	struct ending *ending = ending_of(relay);
	ending->relay = relay;
	ev_init(&ending->due, on_last_words_due);
	leftovers_init(relay);
}

void relay_end_finish(struct relay *relay)
{
	struct ending *ending = ending_of(relay);
	ev_timer_stop(relay->config.loop, &ending->due);
	leftovers_finish(relay);
}

void relay_finish_if_empty(struct relay *relay)
{
	if (!relay->is_ending || relay->is_finished || !list_is_empty(&relay->peers)) {
		return;
	}
	struct ending *ending = ending_of(relay);
	if (leftovers_collect(leftovers_of(relay)) || relay_recover_is_under_way(relay)) {
		return; // called again when that has ended
	}
	if (!ev_is_active(&ending->due)) {
		int wait_ms = ending->is_hurried ? 0 : relay->config.profile->drain_timeout_ms;
		double seconds = wait_ms / 1000.0;
		ending->due.repeat = seconds > 0 ? seconds : AT_ONCE_S; // 0 would mean never
		ending->written = link_written(&relay->editor);
		ev_timer_again(relay->config.loop, &ending->due);
	}
	if (relay->editor.is_broken) {
		ev_feed_event(relay->config.loop, &ending->due, EV_CUSTOM);
		return;
	}
	link_finish_output(&relay->editor);
}

void relay_peer_gone(void *data)
{
	struct peer *peer = data;
	struct relay *relay = peer->relay;
	struct error err;
	grant_resolve_fail(peer,
		failure_set(&err, "AGENT_EXITED", "session", "the session's agent has ended"));
	if (relay_revive_rest(peer) || relay_sync_close(peer)) {
		return;
	}
	if (relay_stops_when_ready(peer) && !peer->is_ready) {
		leftovers_give_up(
			leftovers_of(relay)); // its sandbox never got ready: do not wait again
	}
	leftovers_note_unused(leftovers_of(relay), agent_left(peer->agent));
	relay_sync_finish(peer, &relay_has_ended);
	relay_claim_peer_gone(peer);
	usage_note_gone(peer);
	health_drop_peer(peer);
	pause_destroy(peer);
	list_remove(&peer->link);
	relay_roots_finish(peer);
	toolhost_destroy(peer->toolhost);
	agent_destroy(peer->agent);
	pending_table_finish(&peer->asked);
	parts_finish(&peer->parts, peer);
	free(peer);
	relay_finish_if_empty(relay);
}

/* Nobody answers any more: answers the agents' questions in place of the editor. */
static void answer_for_editor(struct relay *relay)
{
	struct pending *pending;
	while ((pending = pending_oldest(&relay->asked_editor))) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		pending_remove(&relay->asked_editor, pending);
		if (request->on_answer) {
			request->on_answer(relay, request, NULL, &relay_editor_has_left);
		} else {
			peer_answer_when_gone(
				request->peer, pending_origin(pending), request->method);
		}
		request_destroy(request);
	}
}

static void cancel_prompt(void *data, struct session *session)
{
	if (session->prompts > 0 && session->peer) {
		relay_cancel_prompt(data, session);
	}
}

static void end_peers(struct relay *relay, bool is_hurried)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		relay_turn_cancel(peer, NULL);
		pause_release(peer);
		if (peer->keeper) {
			(is_hurried ? keeper_hurry : keeper_note_end)(peer->keeper);
		}
		struct desk_pick waiting = {STAGE_READY, peer, NULL};
		bool has_work = !peer->is_ready && desk_has(&relay->desk, waiting);
		if (has_work && !is_hurried) {
			relay_stop_when_ready(
				peer); // messages from before the end are still handled
		} else {
			agent_stop(peer->agent);
		}
		relay_revive_end(peer);
	}
	relay_finish_if_empty(relay);
}

void relay_end(struct relay *relay)
{
	if (relay->is_ending) {
		return;
	}
	relay->is_ending = true;
	relay_recover_end(relay);
	relay_mcp_exec_end(relay);
	desk_end(&relay->desk, &relay_is_ending);
	health_end(relay);
	session_table_visit(&relay->sessions, NULL, cancel_prompt, relay);
	answer_for_editor(relay);
	end_peers(relay, false);
}

void relay_hurry(struct relay *relay)
{
	assert(relay->is_ending);
	struct ending *ending = ending_of(relay);
	ending->is_hurried = true;
	leftovers_hurry(leftovers_of(relay));
	relay_recover_finish(relay);
	end_peers(relay, true);
	if (ev_is_active(&ending->due)) {
		ev_feed_event(relay->config.loop, &ending->due, EV_CUSTOM);
	}
}
