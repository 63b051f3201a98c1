/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_revive.h"

#include "base/log.h"
#include "broker/ledger/keeper.h"
#include "broker/relay/own_copy.h"
#include "broker/relay/relay_due.h"
#include "broker/relay/relay_sync.h"
#include "broker/relay/relay_turn.h"
#include "broker/session/answer.h"

/* State of a peer whose agent has ended, or that runs another agent in the same sandbox. */
struct rest {
	bool has_served; // an earlier agent was initialized
	bool is_resting; // the agent has ended, and its sandbox is kept for another
	bool is_waking;  // start another once the present one is gone
};

static const struct part_type type = {.size = sizeof(struct rest)};

static struct rest *rest_of(struct peer *peer)
{
	return parts_get(&peer->parts, &type);
}

static bool has_served(const struct peer *peer)
{
	const struct rest *rest = parts_find(&peer->parts, &type);
	return peer->was_greeted || (rest && rest->has_served);
}

static void on_rested(void *data, const struct error *err)
{
	/* The keeper has reported the sync's result like any other. */
}

/* Collects the agent's changes soon, although nobody may ask for the agent again. */
static void collect(struct peer *peer)
{
	if (peer->keeper) {
		keeper_sync(peer->keeper, NULL,
			&(struct sync_order){
				.reason = SYNC_REASON_CRASH, .deletions = SYNC_DELETIONS_KEEP},
			on_rested, peer);
	}
}

/* A sandbox of its own that has no directory is of no use. */
static bool is_of_use(const struct peer *peer)
{
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	const struct sandbox_capabilities *capabilities =
		sandbox ? sandbox_capabilities(sandbox) : NULL;
	return capabilities && (sandbox_root_count(sandbox) > 0 ||
				       (!capabilities->isolated && !capabilities->maps_paths));
}

static bool may_rest(const struct peer *peer)
{
	return has_served(peer) && !peer->relay->is_ending && !relay_sync_has_closed(peer) &&
	       agent_can_restart(peer->agent) && is_of_use(peer) && !own_copy_is_over(peer);
}

static void restart(struct peer *peer)
{
	usage_note_gone(peer);
	agent_restart(peer->agent);
}

bool relay_revive_rest(struct peer *peer)
{
	static const struct error lost = {.code = ERROR_UNAVAILABLE,
		.reason = "SANDBOX_UNAVAILABLE",
		.stage = "prepare",
		.text = "the sandbox was lost before the agent was restarted in it"};
	struct rest *rest = rest_of(peer);
	if (!may_rest(peer)) {
		if (rest->is_waking) {
			rest->is_waking = false;
			peer->relay->ops->peer_down(
				peer, peer->relay->is_ending ? &relay_is_ending : &lost);
		}
		return false;
	}
	if (rest->is_waking) {
		rest->is_waking = false;
		restart(peer);
	} else {
		rest->is_resting = true;
		collect(peer);
	}
	return true;
}

static bool may_revive(const struct peer *peer)
{
	return peer->is_down && may_rest(peer);
}

bool relay_revive(struct peer *peer)
{
	if (!may_revive(peer)) {
		return false;
	}
	struct rest *rest = rest_of(peer);
	rest->has_served = true;
	peer->is_down = false;
	peer->is_ready = false;
	peer->is_greeting = false;
	peer->was_greeted = false;
	relay_due_forget(peer);
	pending_table_finish(&peer->asked); // a new hop: its ids start again
	pending_table_init(&peer->asked, peer->relay->config.profile->max_requests);
	relay_turn_forget_requests(peer);
	peer->relay->agents_started++;
	if (rest->is_resting) {
		rest->is_resting = false;
		restart(peer);
	} else {
		rest->is_waking = true; // the earlier agent has not ended completely
	}
	return true;
}

/*
 * Revives the youngest of all resting peers, or of those with this root, because it has replaced
 * the older ones. NULL: there is none, or it cannot be revived.
 */
static struct peer *revive_youngest(struct relay *relay, const char *local)
{
	struct peer *youngest = NULL;
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		bool has_it = (!local || path_map_has_local(&peer->map, local)) &&
		              !own_copy_has_session(peer);
		youngest = has_it && may_revive(peer) ? peer : youngest;
	}
	return youngest && relay_revive(youngest) ? youngest : NULL;
}

struct peer *relay_revive_any(struct relay *relay)
{
	return revive_youngest(relay, NULL);
}

struct peer *relay_revive_with_root(struct relay *relay, const char *local)
{
	return revive_youngest(relay, local);
}

void relay_revive_end(struct peer *peer)
{
	struct rest *rest = rest_of(peer);
	if (rest->is_resting) {
		rest->is_resting = false;
		peer->relay->ops->peer_gone(peer);
	}
}
