/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/environment.h"
#include "base/log.h"
#include "broker/gate/grant_ask.h"
#include "broker/gate/grant_audit.h"
#include "broker/gate/grant_deletions.h"
#include "broker/gate/grant_hosts.h"
#include "broker/gate/grant_held.h"
#include "broker/gate/grant_login.h"
#include "broker/gate/grant_resolve.h"
#include "broker/gate/old_text.h"
#include "broker/methods/health.h"
#include "broker/methods/pause.h"
#include "broker/methods/sandbox_call.h"
#include "broker/relay/link_show.h"
#include "broker/relay/listing_records.h"
#include "broker/relay/mode_guard.h"
#include "broker/relay/own_copy.h"
#include "broker/relay/relay_agent.h"
#include "broker/relay/relay_claim.h"
#include "broker/relay/relay_editor.h"
#include "broker/relay/relay_stages.h"
#include "broker/relay/relay_end.h"
#include "broker/relay/relay_mcp_exec.h"
#include "broker/relay/relay_methods.h"
#include "broker/relay/relay_order.h"
#include "broker/relay/relay_recover.h"
#include "broker/relay/relay_revive.h"
#include "broker/relay/relay_roots.h"
#include "broker/relay/relay_sync.h"
#include "broker/relay/relay_toolhost.h"
#include "broker/relay/relay_turn.h"
#include "broker/relay/relay_watch.h"
#include "broker/relay/restore.h"
#include "broker/session/answer.h"
#include "broker/session/in_flight.h"
#include "broker/session/notice.h"
#include "broker/session/root_names.h"
#include "broker/session/unanswered.h"

enum { SCRATCH_MAX = 1024 * 1024 }; // bytes of one of the broker's own messages

static const struct relay_ops ops;
static const struct link_listener editor_listener;
static const struct agent_listener peer_listener;

/* ---- agents ---- */

static struct peer *peer_start(struct relay *relay, const char *directory)
{
	struct peer *peer = mem_alloc_zero(sizeof(*peer));
	peer->relay = relay;
	relay->agents_started++;
	peer->number = ++relay->next_peer_number;
	pending_table_init(&peer->asked, relay->config.profile->max_requests);
	snprintf(peer->hop, sizeof(peer->hop), "agent %d", peer->number);
	list_append(&relay->peers, &peer->link);
	struct agent_config config = {
		.loop = relay->config.loop,
		.pool = relay->config.pool,
		.provider = relay->config.provider,
		.profile = relay->config.profile,
		.directory = directory ? directory : relay->config.directory,
		.places = relay->places,
		.secrets = relay->config.secrets,
		.listener = &peer_listener,
		.data = peer,
	};
	root_names_init(peer);
	peer->agent = agent_create(&config);
	return peer;
}

static struct peer *further_peer(struct relay *relay, const char *directory)
{
	int count = 0;
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		count++;
	}
	return relay->is_ending || count >= RELAY_PEERS_MAX ? NULL : peer_start(relay, directory);
}

static struct peer *current_peer(struct relay *relay)
{
	struct peer *peer = relay_running_peer(relay);
	peer = peer ? peer : relay_revive_any(relay);
	return peer ? peer : further_peer(relay, NULL);
}

static void fail_all_asked(struct peer *peer, const struct error *failure)
{
	struct pending *pending;
	while ((pending = pending_oldest(&peer->asked))) {
		pending_remove(&peer->asked, pending);
		relay_fail_request(
			peer->relay, CONTAINER_OF(pending, struct request, pending), failure);
	}
}

/*
 * The editor need not answer an agent that has ended. An answer that comes nevertheless is dropped.
 */
static void forget_asked_by(struct peer *peer, bool is_told)
{
	struct relay *relay = peer->relay;
	LIST_FOR_EACH(pending, &relay->asked_editor.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (request->peer != peer) {
			continue;
		}
		pending_remove(&relay->asked_editor, pending);
		if (is_told) {
			relay_withdraw_question(relay, request);
			grant_close_question(relay, request);
		}
		request_destroy(request);
	}
}

static void note_link(void *data, struct session *session)
{
	const struct peer *peer = data;
	session->was_link_lost = agent_was_lost(peer->agent);
}

static void on_down(void *data, const struct error *failure)
{
	struct peer *peer = data;
	if (peer->is_down) {
		return;
	}
	peer->is_down = true;
	if (!peer->relay->is_ending) {
		bool is_told = (peer->relay->config.client_tells && !peer->was_greeted) ||
		               own_copy_is_over(peer);
		log_failure(
			is_told ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, failure, "%s", failure->text);
		if (!peer->was_greeted) {
			relay_note_start(
				peer->relay, failure->reason ? failure->reason : "AGENT_EXITED");
		}
	}
	link_show_failed(peer, failure);
	pause_release(peer);
	relay_toolhost_end(peer);
	sandbox_calls_end(peer->relay, peer, NULL, failure);
	relay_mcp_exec_close(peer->relay, peer, NULL);
	session_table_visit(&peer->relay->sessions, peer, note_link, peer);
	session_table_orphan(&peer->relay->sessions, peer);
	grant_resolve_fail(peer, failure);
	grant_hosts_drop(peer);
	grant_login_drop(peer);
	forget_asked_by(peer, !peer->relay->editor_has_ended);
	grant_deletions_drop(peer);
	fail_all_asked(peer, failure);
	relay_fail_waiting(peer, failure);
	in_flight_note(peer, NULL);        // no prompt and no terminal is in progress now
	link_resume(&peer->relay->editor); // it may have waited for this agent
}

struct agent_note {
	struct relay *relay;
	const char *text;
	bool is_told;
};

static void note_to(void *data, struct session *session)
{
	struct agent_note *note = data;
	note->is_told = true;
	notice_send(note->relay, session, note->text, true);
}

/*
 * The agent has reached a limit, or there is news about its sandbox. The log gets it if no session
 * can show it.
 */
static void on_note(void *data, const char *text)
{
	struct peer *peer = data;
	struct agent_note note = {.relay = peer->relay, .text = text};
	if (!peer->relay->is_ending) {
		session_table_visit(&peer->relay->sessions, peer, note_to, &note);
	}
	if (!note.is_told) {
		log_warning("%s: %s", peer->hop, text);
	}
}

static void on_link_lost(void *data, const char *place, const struct error *why)
{
	link_show_lost(data, place, why);
}

static void on_link_back(void *data)
{
	link_show_back(data);
}

/*
 * The connection belongs to the sandbox and not to a session, because several sessions may share
 * the sandbox.
 */
static void on_connection(void *data, const struct sandbox_connection *connection)
{
	const struct peer *peer = data;
	const struct audit_connection more = {.way = connection->way,
		.result = connection->result,
		.server_name = connection->server_name,
		.left_out = connection->left_out};
	audit_write(peer->relay->config.audit,
		&(struct audit_line){
			.operation = "network/connect",
			.subject = connection->target,
			.rule = connection->rule,
			.connection = &more,
			.decision = connection->is_allowed ? POLICY_ALLOW_ONCE : POLICY_REJECT_ONCE,
			.by = connection->is_by_user ? AUDIT_BY_PERSON : AUDIT_BY_POLICY,
		});
}

/* ---- the editor's link ---- */

static void on_editor_end(void *data, const struct error *err)
{
	log_debug("editor: %s", err ? err->text : "it has closed its side");
	relay_editor_gone(data);
}

static void on_editor_broken(void *data, const struct error *err)
{
	struct relay *relay = data;
	log_failure(LOG_LEVEL_DEBUG, err, "editor: %s", err->text);
	relay_editor_gone(relay);
	relay_finish_if_empty(relay);
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		link_resume(agent_link(peer->agent));
	}
}

/* The editor reads again: reads from all agents that waited for that. */
static void on_editor_drained(void *data)
{
	struct relay *relay = data;
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		link_resume(agent_link(peer->agent));
	}
	link_resume(&relay->editor);
}

static void on_editor_flushed(void *data)
{
	relay_finish(data);
}

static const struct link_listener editor_listener = {
	.on_frame = relay_on_editor_frame,
	.on_end = on_editor_end,
	.on_broken = on_editor_broken,
	.on_drained = on_editor_drained,
	.on_flushed = on_editor_flushed,
};

static const struct agent_listener peer_listener = {
	.on_frame = relay_on_agent_frame,
	.count_taken = relay_count_taken,
	.on_drained = relay_on_agent_drained,
	.on_ready = relay_peer_ready,
	.on_exited = pause_release,
	.on_down = on_down,
	.on_gone = relay_peer_gone,
	.on_limit = on_note,
	.on_notice = on_note,
	.on_link_lost = on_link_lost,
	.on_link_back = on_link_back,
	.on_connection = on_connection,
	.on_wish = grant_hosts_on_wish,
	.on_wish_gone = grant_hosts_on_wish_gone,
	.on_program = grant_hosts_on_program,
};

/* ---- for lower files ---- */

static bool takes_failure(struct relay *relay, struct span id, const struct error *failure)
{
	if (restore_takes_failure(relay, id, failure)) {
		return true;
	}
	relay_claim_drop(relay, id);
	listing_records_drop(relay, id);
	relay_order_note(relay, id);
	return false;
}

static const struct relay_ops ops = {
	.on_agent_request = relay_on_agent_request,
	.pass_agent_request = relay_pass_agent_request,
	.takes_failure = takes_failure,
	.on_answered = relay_order_note,
	.on_unanswered = grant_note_failed,
	.has_waiting_prompt = relay_turn_has_prompt,
	.on_editor_call = relay_on_editor_call,
	.on_parked_call = relay_on_parked_call,
	.pass_editor_request = relay_pass_editor_request,
	.on_agent_call = relay_on_agent_call,
	.pass_response = relay_pass_response,
	.method_of = relay_method_of,
	.current_peer = current_peer,
	.further_peer = further_peer,
	.peer_down = on_down,
	.peer_gone = relay_peer_gone,
	.finish_if_empty = relay_finish_if_empty,
};

/* ---- life ---- */

static void on_forget(void *data, const struct session *session)
{
	struct relay *relay = data;
	struct error err;
	desk_fail_all(&relay->desk, (struct desk_pick){STAGE_MODE, NULL, session->id},
		failure_set(&err, "SESSION_LOST", "session", "the session is no longer open"));
	grant_login_cancel(relay, session->id);
	sandbox_calls_end(relay, NULL, session->id,
		failure_set(&err, "SESSION_LOST", "session", "the session is no longer open"));
	relay_mcp_exec_close(relay, NULL, session->id);
	if (!own_copy_forget(relay, session)) {
		relay_sync_remove_session(data, session);
	}
}

struct relay *relay_create(const struct relay_config *config)
{
	const struct profile *profile = config->profile;
	struct relay *relay = mem_alloc_zero(sizeof(*relay));
	relay->config = *config;
	relay->ops = &ops;
	relay->places = places_create();
	list_init(&relay->peers);
	relay_stages_init(relay);
	pending_table_init(&relay->asked_editor, profile->max_requests);
	session_table_init(&relay->sessions, profile->max_sessions);
	relay->sessions.on_forget = on_forget;
	relay->sessions.data = relay;
	relay->sessions.destroy_guard = mode_guard_destroy;
	splice_init(&relay->edits);
	buf_init(&relay->scratch, SCRATCH_MAX);
	timestamp_now(relay->usage.since);
	relay_end_init(relay);
	relay_watch_init(relay);
	relay_mcp_exec_init(relay);
	struct link_config link_config = {
		.loop = config->loop,
		.places = relay->places,
		.max_message = profile->max_message,
		.max_queue = profile->max_queue,
		.listener = &editor_listener,
		.data = relay,
	};
	link_init(&relay->editor, &link_config);
	return relay;
}

void relay_start(struct relay *relay, int editor_in, int editor_out)
{
	link_connect(&relay->editor, editor_in, editor_out);
}

void relay_destroy(struct relay *relay)
{
	health_drop_all(relay);
	sandbox_calls_end(relay, NULL, NULL, NULL);
	relay_mcp_exec_end(relay);
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		peer->is_down = true;
		relay_sync_give_up(peer);
		forget_asked_by(peer, false);
		relay_fail_waiting(peer, &relay_has_ended);
		fail_all_asked(peer, &relay_has_ended);
		relay_peer_gone(peer);
	}
	restore_finish(relay);
	desk_forget(&relay->desk, (struct desk_pick){.stage = STAGE_NONE});
	relay_claim_finish(relay);
	relay_order_finish(relay);
	listing_records_finish(relay);
	relay_recover_finish(relay);
	relay_end_finish(relay);
	relay_watch_finish(relay);
	link_close(&relay->editor);
	link_finish(&relay->editor);
	pending_table_finish(&relay->asked_editor);
	session_table_finish(&relay->sessions);
	splice_finish(&relay->edits);
	buf_finish(&relay->scratch);
	parts_finish(&relay->parts, relay);
	json_places_destroy(relay->places);
	free(relay);
}
