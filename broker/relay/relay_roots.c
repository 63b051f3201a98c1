/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_roots.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/words.h"
#include "broker/relay/own_copy.h"
#include "broker/relay/relay_mcp.h"
#include "broker/relay/relay_methods.h"
#include "broker/relay/relay_revive.h"
#include "broker/relay/relay_sync.h"
#include "broker/relay/relay_turn.h"
#include "broker/relay/root_check.h"
#include "broker/relay/root_setup.h"
#include "broker/session/answer.h"
#include "broker/session/root_names.h"
#include "broker/session/serving.h"

/* A request that opens a session, until the sandbox has its directories. */
struct opening {
	struct waiting waiting; // without its message once it was answered
	struct peer *peer;
	char **directories;       // owned, NULL-terminated
	struct root_check *check; // owned; while it checks whether they may be synced
	size_t next;              // index of the directory that is being added
	struct root_setup *setup; // owned; while it runs the workspace's own lines
	struct call call;         // once they are roots
	struct mcp_commands commands;
	struct mcp_lookup *lookup; // owned; NULL: nothing to ask
};

static void opening_destroy(struct opening *opening)
{
	desk_drop(&opening->waiting);
	root_check_destroy(opening->check);
	root_setup_destroy(opening->setup);
	mcp_lookup_destroy(opening->lookup);
	mcp_commands_finish(&opening->commands);
	words_free(opening->directories);
	free(opening);
}

static struct opening *opening_of(struct waiting *waiting)
{
	return CONTAINER_OF(waiting, struct opening, waiting);
}

/* Frees the opening now if no root is being added; otherwise the callback of that frees it. */
void relay_roots_on_left(struct waiting *waiting, const struct error *failure)
{
	struct opening *opening = opening_of(waiting);
	if (opening->lookup || opening->check || opening->setup) {
		opening_destroy(opening);
	}
}

void relay_roots_on_gone(struct waiting *waiting)
{
	opening_destroy(opening_of(waiting));
}

void relay_roots_finish(struct peer *peer)
{
	assert(!desk_has(&peer->relay->desk, (struct desk_pick){STAGE_READY, peer, NULL}));
	desk_forget(&peer->relay->desk, (struct desk_pick){STAGE_ROOTS, peer, NULL});
	root_names_finish(peer);
}

/* ---- waiting for the sandbox ---- */

bool relay_wait_until_ready(struct peer *peer, const struct call *call, struct error *err)
{
	struct relay *relay = peer->relay;
	struct desk_pick mine = {STAGE_READY, peer, NULL};
	size_t most = relay->config.profile->max_queue;
	if (relay->desk.bytes[STAGE_READY] > most && desk_load(&relay->desk, mine).bytes > most) {
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"more than max-queue bytes wait for the sandbox");
	}
	desk_hold(&relay->desk, NULL, STAGE_READY, peer, call);
	return true;
}

/* Part of a peer that is to be stopped; its presence is the mark. */
static const struct part_type stop_type = {.size = sizeof(bool)};

void relay_stop_when_ready(struct peer *peer)
{
	(void)parts_get(&peer->parts, &stop_type);
}

bool relay_stops_when_ready(const struct peer *peer)
{
	return parts_find(&peer->parts, &stop_type) != NULL;
}

void relay_peer_ready(void *data)
{
	struct peer *peer = data;
	struct waiting *waiting;
	struct desk_pick mine = {STAGE_READY, peer, NULL};
	peer->is_ready = true;
	root_names_read_known(peer);
	while (!peer->is_down && (waiting = desk_first(&peer->relay->desk, mine))) {
		struct call call;
		if (desk_open(waiting, &call)) {
			peer->relay->ops->on_parked_call(peer, &call);
		}
		desk_drop(waiting);
	}
	if (relay_stops_when_ready(peer)) {
		agent_stop(peer->agent);
	}
}

/* ---- waiting for the roots ---- */

/* Fails an opening that has no lookup, no check and no lines in progress. */
static void opening_fail(struct opening *opening, const struct error *failure)
{
	assert(!opening->lookup && !opening->check && !opening->setup);
	desk_fail(&opening->waiting, failure);
	opening_destroy(opening);
}

static void opening_refuse(struct opening *opening, const char *stage, const struct error *err)
{
	struct error failure = *err;
	opening_fail(opening, error_at(&failure, stage));
}

/* Everything is ready: the request goes on. */
static void opening_pass(void *data)
{
	struct opening *opening = data;
	struct peer *peer = opening->peer;
	desk_release(&opening->waiting); // from here on others answer it
	opening->call.mcp = &opening->commands;
	peer->relay->ops->pass_editor_request(peer, &opening->call);
	opening_destroy(opening);
}

/* All roots exist: asks for its MCP servers. */
static void opening_ask(struct opening *opening)
{
	if (!desk_read(&opening->waiting, &opening->call)) {
		opening_destroy(opening);
		return;
	}
	opening->lookup = relay_mcp_ask(
		opening->peer, &opening->call, &opening->commands, opening_pass, opening);
	if (!opening->lookup) {
		opening_pass(opening);
	}
}

static bool is_about_to_have(const struct peer *peer, const char *directory)
{
	const char *reserved_for = peer_reserved_for(peer);
	if (reserved_for) {
		return strcmp(reserved_for, directory) == 0;
	}
	LIST_FOR_EACH(waiting, &peer->relay->desk.stages[STAGE_ROOTS], struct waiting, link) {
		if (waiting->peer == peer &&
			strcmp(opening_of(waiting)->directories[0], directory) == 0) {
			return true;
		}
	}
	return false;
}

/* An agent that was started for a request that was cancelled before it was ready; or NULL. */
static struct peer *unwanted_peer(struct relay *relay)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		if (!peer->is_down && peer_reserved_for(peer) &&
			!desk_has(&relay->desk, (struct desk_pick){STAGE_READY, peer, NULL}) &&
			!desk_has(&relay->desk, (struct desk_pick){STAGE_ROOTS, peer, NULL})) {
			return peer;
		}
	}
	return NULL;
}

/* The agent of another session that has, or will have, the directory; or a new one. */
static struct peer *peer_for(const struct opening *opening)
{
	struct relay *relay = opening->peer->relay;
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		if (!peer->is_down && peer != opening->peer &&
			(path_map_has_local(&peer->map, opening->directories[0]) ||
				is_about_to_have(peer, opening->directories[0]))) {
			return peer;
		}
	}
	struct peer *peer = relay_revive_with_root(relay, opening->directories[0]);
	if (peer) {
		return peer;
	}
	peer = unwanted_peer(relay);
	peer = peer ? peer : relay->ops->further_peer(relay, opening->directories[0]);
	if (peer) {
		peer_reserve(peer, opening->directories[0]);
		log_info("%s: starting %s for %s", opening->peer->hop, peer->hop,
			opening->directories[0]);
	}
	return peer;
}

static void opening_begin(struct opening *opening);

/* The sandbox takes no further root: the session gets another agent. */
static void opening_move(struct opening *opening, const struct error *err)
{
	log_failure(LOG_LEVEL_INFO, err, "%s: %s", opening->peer->hop, err->text);
	bool is_own = relay_is_per_session(opening->peer->relay);
	struct peer *peer = is_own ? own_copy_peer(opening->peer->relay) : peer_for(opening);
	if (peer && is_own && !peer->is_ready) {
		peer_reserve(peer, opening->directories[0]);
	}
	if (!peer) {
		struct error failure;
		opening_fail(opening, failure_set(&failure, "RESOURCE_LIMIT_EXCEEDED", "session",
					      "no further agent can be started"));
		return;
	}
	if (peer->is_ready) {
		peer_reserve(peer, NULL);
		opening->peer = peer;
		opening->waiting.peer = peer;
		opening_begin(opening);
		return;
	}
	desk_move(&opening->waiting, STAGE_READY, peer);
	opening_destroy(opening);
}

/*
 * A step has ended. False if it was the last one, because nobody waits any more. A cancelled
 * request also ends here, but only after its workspaces are synced, because they are in the
 * records.
 */
static bool goes_on(struct opening *opening, const struct error *err)
{
	if (!opening->waiting.parcel && (err || opening->peer->is_down)) {
		opening_destroy(opening);
		return false;
	}
	return true;
}

static void on_set_up(void *data, const struct error *err)
{
	struct opening *opening = data;
	opening->setup = NULL;
	if (err) {
		opening_refuse(opening, "prepare", err);
	} else {
		opening_ask(opening);
	}
}

/* The files in its directories are synced. */
static void on_synced(void *data, const struct error *err)
{
	struct opening *opening = data;
	if (!opening->waiting.parcel) {
		opening_destroy(opening);
	} else if (err) {
		opening_refuse(opening, "sync", err);
	} else {
		opening->setup = root_setup_start(
			opening->peer, opening->directories[0], on_set_up, opening);
		if (!opening->setup) {
			opening_ask(opening);
		}
	}
}

static void on_root_added(void *data, const struct error *err)
{
	struct opening *opening = data;
	struct peer *peer = opening->peer;
	if (err && !peer->is_down) {
		relay_sync_renounce(peer, opening->directories, err);
	} else if (!err) {
		root_names_read_roots(peer);
	}
	if (!goes_on(opening, err)) {
		return;
	}
	if (err && err->code == ERROR_UNAVAILABLE && opening->next == 0 &&
		sandbox_root_count(agent_sandbox(peer->agent)) > 0) {
		opening_move(opening, err);
		return;
	}
	if (err) {
		opening_refuse(opening, "session", err);
		return;
	}
	opening->next++;
	if (opening->directories[opening->next]) {
		sandbox_add_root(agent_sandbox(peer->agent), opening->directories[opening->next],
			on_root_added, opening);
		return;
	}
	if (!relay_sync_open(peer, opening->directories, on_synced, opening)) {
		on_synced(opening, NULL);
	}
}

/* The records say that the first directory is about to become a root. */
static void on_announced(void *data, const struct error *err)
{
	struct opening *opening = data;
	if (err && !opening->peer->is_down) {
		relay_sync_renounce(opening->peer, opening->directories, err);
	}
	if (!goes_on(opening, err)) {
		return;
	}
	if (err) {
		opening_refuse(opening, "sync", err);
		return;
	}
	sandbox_add_root(agent_sandbox(opening->peer->agent), opening->directories[0],
		on_root_added, opening);
}

static void opening_add_first(struct opening *opening)
{
	if (!relay_sync_announce(opening->peer, opening->directories, on_announced, opening)) {
		on_announced(opening, NULL);
	}
}

static void on_checked(void *data, const struct error *err)
{
	struct opening *opening = data;
	opening->check = NULL;
	if (!err) {
		opening_add_first(opening);
		return;
	}
	struct error copy = *err;
	if (err->code == ERROR_SYSTEM) {
		error_set_reason(&copy, ERROR_SYSTEM, err->reason,
			"%s: a session that is synced needs its directory on this machine: make "
			"it, or open another",
			err->text);
	}
	opening_refuse(opening, "sync", &copy);
}

/*
 * Checks whether a directory may be synced before anything is copied, and refuses it if nobody can
 * check. False if there is nothing to check.
 */
static bool opening_check(struct opening *opening)
{
	struct error err;
	const struct relay_config *config = &opening->peer->relay->config;
	if (!relay_needs_sync(opening->peer) || config->profile->sync.mode == SYNC_MODE_NONE) {
		return false;
	}
	const struct root_check_own own = {.home = config->home,
		.state_folder = config->state_folder,
		.files = config->own_files};
	opening->check = root_check_create(
		config->pool, opening->directories, &own, on_checked, opening, &err);
	if (!opening->check) {
		opening_refuse(opening, "sync", &err);
	}
	return true;
}

/*
 * ACP requires absolute paths. Checked before records are written, because a record must name its
 * workspace by a path that is valid everywhere.
 */
static bool are_absolute(char *const *directories, struct error *err)
{
	for (; *directories; directories++) {
		if ((*directories)[0] != '/') {
			return error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS",
				"workspace %s: it is not absolute: open it by a path that "
				"begins with /",
				*directories);
		}
	}
	return true;
}

static void opening_begin(struct opening *opening)
{
	struct error err;
	enum own_copy_fit fit = own_copy_fit(opening->peer, &opening->waiting);
	if (!are_absolute(opening->directories, &err)) {
		opening_refuse(opening, "session", &err);
	} else if (fit == OWN_COPY_TAKEN) {
		error_set(&err, ERROR_UNAVAILABLE, "another session has its copy");
		opening_move(opening, &err);
	} else if (fit == OWN_COPY_FAILED) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "SANDBOX_UNAVAILABLE",
			"the session's copy cannot be made again: the log gives the reason");
		opening_refuse(opening, "session", &err);
	} else if (!opening_check(opening)) {
		opening_add_first(opening);
	}
}

bool relay_open_roots(struct peer *peer, const struct call *call)
{
	bool is_served = relay_uses_toolhost(peer) || peer->relay->config.profile->mcp_exec;
	bool is_set_up = root_setup_is_needed(peer);
	if (!is_served && !is_set_up && relay_shares_files(peer) && !relay_needs_sync(peer)) {
		return false;
	}
	char **directories = relay_directories_of(&call->message);
	if (!directories[0]) {
		words_free(directories);
		return false; // without a cwd: the agent will refuse it
	}
	peer_reserve(peer, NULL);
	struct desk_pick mine = {STAGE_ROOTS, peer, NULL};
	if (!relay_admits_at(peer->relay, call, mine)) {
		words_free(directories);
		return true;
	}
	struct opening *opening = mem_alloc_zero(sizeof(*opening));
	opening->peer = peer;
	opening->directories = directories;
	mcp_commands_init(&opening->commands);
	desk_hold(&peer->relay->desk, &opening->waiting, STAGE_ROOTS, peer, call);
	opening_begin(opening);
	return true;
}

/* ---- the agent has ended ---- */

void relay_fail_waiting(struct peer *peer, const struct error *failure)
{
	static const enum desk_stage stages[] = {STAGE_SYNC, STAGE_READY, STAGE_ROOTS};
	for (size_t i = 0; i < ARRAY_LENGTH(stages); i++) {
		desk_fail_all(
			&peer->relay->desk, (struct desk_pick){stages[i], peer, NULL}, failure);
	}
}
