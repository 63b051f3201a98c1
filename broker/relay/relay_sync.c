/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_sync.h"
#include "broker/relay/opens.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "broker/gate/grant_deletions.h"
#include "broker/gate/grant_held.h"
#include "broker/ledger/plain_record.h"
#include "broker/methods/inquiry.h"
#include "broker/relay/relay_leftovers.h"
#include "broker/relay/relay_state.h"
#include "broker/relay/relay_turn.h"
#include "broker/session/notice.h"

/* A part of a peer. */
struct synced {
	char *unsaid;       // owned; notices of a sync before there was a session to show them in
	char *last_session; // owned; the editor's id of the session opened or prompted last
	bool is_collected;  // or it never will be
	struct plain_records *plain; // owned; for sessions in the workspace itself; or NULL
};

static void finish(void *part, void *peer)
{
	struct synced *synced = part;
	free(synced->unsaid);
	free(synced->last_session);
	plain_records_destroy(synced->plain);
}

static const struct part_type type = {.size = sizeof(struct synced), .finish = finish};

static struct synced *synced_of(struct peer *peer)
{
	return parts_get(&peer->parts, &type);
}

/* ---- notices to the user ---- */

/* The session that is being opened gets the notice later. */
static void remember_unsaid(struct peer *peer, const char *text)
{
	struct synced *synced = synced_of(peer);
	char *said = synced->unsaid;
	synced->unsaid = mem_alloc_zero(SYNC_SHOW_TEXT_MAX);
	text_format(synced->unsaid, SYNC_SHOW_TEXT_MAX, "%s%s%s", said ? said : "",
		said ? "; " : "", text);
	free(said);
}

static void tell(struct peer *peer, const struct keeper_event *event, const char *text, bool failed)
{
	struct session_table *sessions = &peer->relay->sessions;
	struct session *session = event->session ? session_find(sessions, event->session) : NULL;
	if (event->reason == SYNC_REASON_START) {
		if (!failed || event->is_put_off) { // the opener gets any other failure
			remember_unsaid(peer, text);
		}
		return;
	}
	const char *last_session = synced_of(peer)->last_session;
	if (!session && last_session) {
		session = session_find(sessions, last_session);
	}
	if (session) {
		notice_show(
			peer->relay, session, 0, text, failed ? NOTICE_FAILED : NOTICE_COMPLETED);
	}
}

static void on_ended(void *data, const struct keeper_event *event, const struct sync_result *result,
	const struct error *err)
{
	struct peer *peer = data;
	char text[SYNC_TEXT_MAX];
	bool is_news = sync_text_write(text, event->local_root, result, err);
	struct sync_show *show = relay_turn_show(peer, event->asker);
	usage_note_sync(peer->relay, result, err);
	if (is_news) {
		log_warning("%s: %s", peer->hop, text);
	} else {
		log_info("%s: %s", peer->hop, text);
	}
	if (show) {
		sync_show_add(show, text, is_news, err != NULL);
	} else if (is_news) {
		tell(peer, event, text, err != NULL);
	}
	if (!err) {
		grant_held_on_synced(peer, event, result);
	}
}

void relay_sync_note_session(struct peer *peer, const char *id)
{
	mem_set_text(&synced_of(peer)->last_session, id);
}

static void on_question(
	void *data, const struct keeper_event *event, const struct deletions *deletions)
{
	grant_deletions_ask(data, event, deletions);
}

static void on_state(void *data, const struct keeper_state *state)
{
	struct peer *peer = data;
	relay_state_tell(peer->relay, peer, state);
}

static const struct keeper_listener keeper_listener = {
	.on_ended = on_ended, .on_question = on_question, .on_state = on_state};

/* ---- life ---- */

void relay_sync_finish(struct peer *peer, const struct error *failure)
{
	relay_turn_finish_all(peer, failure);
	inquiry_drop_all(peer, failure);
	keeper_destroy(peer->keeper);
	peer->keeper = NULL;
	plain_records_destroy(synced_of(peer)->plain);
	synced_of(peer)->plain = NULL;
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
			.agent = config->profile->agent_name,
			.backend = config->profile->backend,
			.state_folder = config->state_folder ? config->state_folder : "",
			.home = config->home,
			.max_sessions = config->profile->max_sessions,
			.drain_timeout_ms = config->profile->pause_drain_timeout_ms,
			.tools = config->tools,
			.listener = &keeper_listener,
			.data = peer,
		});
	}
	return peer->keeper;
}

/* ---- opening a session ---- */

bool relay_sync_announce(
	struct peer *peer, char *const *directories, sandbox_done *done, void *data)
{
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	if (!relay_needs_sync(peer) ||
		(sandbox_root_count(sandbox) > 0 && !sandbox_capabilities(sandbox)->many_roots)) {
		return false; // no root will be added: it exists, or is refused
	}
	return keeper_announce(keeper_of(peer), directories, done, data);
}

void relay_sync_renounce(struct peer *peer, char *const *directories, const struct error *err)
{
	if (peer->keeper) {
		keeper_renounce(peer->keeper, directories, err);
	}
}

bool relay_sync_open(struct peer *peer, char *const *directories, sandbox_done *done, void *data)
{
	if (!relay_needs_sync(peer)) {
		return false;
	}
	/* There is no session yet in which the user could see that this takes a while. */
	log_info("%s: syncing %s, for a session", peer->hop, directories[0]);
	keeper_open(keeper_of(peer), directories, done, data);
	return true;
}

/* Records the open session for other programs, although nothing of it is synced. */
static void add_plain(struct peer *peer, const struct session *session)
{
	const struct relay_config *config = &peer->relay->config;
	struct synced *synced = synced_of(peer);
	if (!agent_sandbox(peer->agent) || !config->pool || !config->state_folder ||
		config->is_trial || peer->relay->is_ending) {
		return;
	}
	if (!synced->plain) {
		synced->plain = plain_records_create(&(struct plain_config){.pool = config->pool,
			.state_folder = config->state_folder,
			.profile = config->profile->name,
			.backend = config->profile->backend,
			.agent = config->profile->agent_name});
	}
	plain_records_add(synced->plain, session->roots, session->agent_id);
}

void relay_sync_add_session(struct peer *peer, const struct session *session)
{
	if (!peer->keeper) {
		add_plain(peer, session);
		return;
	}
	keeper_add_session(peer->keeper, session->roots, session->agent_id);
	relay_sync_note_choices(peer->relay, session);
	relay_sync_note_session(peer, session->id);
}

void relay_sync_note_choices(struct relay *relay, const struct session *session)
{
	struct peer *peer = session->peer;
	if (!peer || !peer->keeper) {
		return;
	}
	struct buf json;
	buf_init(&json, CHOICES_JSON_MAX);
	choices_write_json(&session->choices, &json);
	keeper_set_choices(peer->keeper, session->agent_id, buf_span(&json));
	buf_finish(&json);
}

void relay_sync_remove_session(void *relay, const struct session *session)
{
	struct peer *peer = relay_peer_of_number(relay, session->agent_number);
	if (peer && peer->keeper) {
		keeper_remove_session(peer->keeper, session->agent_id);
	} else if (peer && synced_of(peer)->plain) {
		plain_records_remove(synced_of(peer)->plain, session->agent_id);
	}
}

void relay_sync_tell(struct relay *relay, const struct request *request)
{
	struct peer *peer = request->peer;
	const struct session *session = opens_session(relay, request);
	struct synced *synced = synced_of(peer);
	if (session && synced->unsaid) {
		notice_send(relay, session, synced->unsaid, false);
		free(synced->unsaid);
		synced->unsaid = NULL;
	}
}

/* ---- the end ---- */

void relay_sync_give_up(struct peer *peer)
{
	synced_of(peer)->is_collected = true;
}

bool relay_sync_has_closed(const struct peer *peer)
{
	const struct synced *synced = parts_find(&peer->parts, &type);
	return (synced && synced->is_collected) ||
	       (peer->keeper && keeper_is_closing(peer->keeper));
}

static void on_closed(void *data, const struct error *err)
{
	struct peer *peer = data;
	if (err) {
		log_failure(LOG_LEVEL_ERROR, err, "%s: %s", peer->hop, err->text);
	}
	leftovers_note(peer, err);
	relay_sync_give_up(peer);
	peer->relay->ops->peer_gone(peer);
}

bool relay_sync_close(struct peer *peer)
{
	/*
	 * No session has used the sandbox, or its files are those of the workspace itself. The
	 * keeper must still stop it.
	 */
	if (!peer->keeper && agent_sandbox(peer->agent) && peer->relay->config.pool &&
		sandbox_can_rest(agent_sandbox(peer->agent))) {
		keeper_of(peer);
	}
	if (!peer->keeper || synced_of(peer)->is_collected) {
		return false;
	}
	if (!keeper_is_closing(peer->keeper)) {
		keeper_close(peer->keeper, on_closed, peer);
	}
	return true;
}
