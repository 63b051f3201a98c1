/* SPDX-License-Identifier: MIT */
#include "broker/relay/own_copy.h"

#include <string.h>

#include "broker/ledger/keeper.h"
#include "broker/relay/relay_claim.h"
#include "broker/relay/relay_revive.h"

/* A part of a peer. */
struct own_copy {
	bool has_session; // it has a session, or had one
	bool is_over;
};

static const struct part_type type = {.size = sizeof(struct own_copy)};

void own_copy_note(struct peer *peer)
{
	if (relay_is_per_session(peer->relay)) {
		((struct own_copy *)parts_get(&peer->parts, &type))->has_session = true;
	}
}

bool own_copy_has_session(const struct peer *peer)
{
	const struct own_copy *own = parts_find(&peer->parts, &type);
	return own && own->has_session;
}

bool own_copy_is_over(const struct peer *peer)
{
	const struct own_copy *own = parts_find(&peer->parts, &type);
	return own && own->is_over;
}

/* ---- sessions of an agent ---- */

struct looking {
	const struct peer *peer;
	const struct session *but; // except this one; may be NULL
	bool has_found;
};

static void look(void *data, struct session *session)
{
	struct looking *looking = data;
	looking->has_found |=
		session != looking->but && session->agent_number == looking->peer->number;
}

static bool has_session(const struct peer *peer, const struct session *but)
{
	struct looking looking = {.peer = peer, .but = but};
	session_table_visit(&peer->relay->sessions, NULL, look, &looking);
	return looking.has_found;
}

/* Whether another message than `mine` is opening a session there. */
static bool is_opening(const struct peer *peer, const struct waiting *mine)
{
	LIST_FOR_EACH(waiting, &peer->relay->desk.stages[STAGE_ROOTS], struct waiting, link) {
		if (waiting->peer == peer && waiting != mine) {
			return true;
		}
	}
	LIST_FOR_EACH(pending, &peer->asked.order, struct pending, order_link) {
		const struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (request->method && request->method->opens_session) {
			return true;
		}
	}
	struct desk_pick waiting = {STAGE_READY, (struct peer *)peer, NULL};
	return peer_reserved_for(peer) && desk_has(&peer->relay->desk, waiting);
}

/* The sandbox in which a reopened session has worked; or NULL. */
static const char *wanted_by(
	struct relay *relay, const struct session *session, const struct waiting *mine)
{
	return session    ? session->reference
	       : mine->id ? relay_claim_reference(relay, span_of(mine->id))
	                  : NULL;
}

enum own_copy_fit own_copy_fit(struct peer *peer, const struct waiting *mine)
{
	struct relay *relay = peer->relay;
	if (!relay_is_per_session(relay)) {
		return OWN_COPY_FITS;
	}
	const struct session *session =
		mine->session_id ? session_find(&relay->sessions, mine->session_id) : NULL;
	if (session && session->peer == peer) {
		return OWN_COPY_FITS; // it is open here, or is being forked
	}
	if (has_session(peer, session) || is_opening(peer, mine)) {
		return OWN_COPY_TAKEN;
	}
	struct sandbox *sandbox = agent_sandbox(peer->agent);
	const char *wanted = wanted_by(relay, session, mine);
	if (wanted && sandbox_is_reference(sandbox_reference(sandbox), wanted)) {
		return OWN_COPY_FITS;
	}
	if (own_copy_has_session(peer) || (wanted && sandbox_root_count(sandbox) > 0)) {
		return OWN_COPY_TAKEN;
	}
	return !wanted || sandbox_take_over(sandbox, wanted) ? OWN_COPY_FITS : OWN_COPY_FAILED;
}

struct peer *own_copy_peer(struct relay *relay)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		bool is_free = !peer->is_down && !own_copy_has_session(peer) &&
		               !has_session(peer, NULL) && !is_opening(peer, NULL);
		if (is_free && peer->is_ready &&
			sandbox_root_count(agent_sandbox(peer->agent)) == 0) {
			return peer;
		}
	}
	return relay->ops->further_peer(relay, NULL);
}

/* ---- end ---- */

static void end(struct peer *peer)
{
	struct own_copy *own = parts_get(&peer->parts, &type);
	own->is_over = true;
	if (peer->keeper) {
		keeper_note_end(peer->keeper); // a request that loads the session meanwhile waits
	}
	if (peer->is_down) {
		relay_revive_end(peer);
	} else {
		agent_stop(peer->agent);
	}
}

bool own_copy_forget(struct relay *relay, const struct session *session)
{
	struct peer *peer = relay_peer_of_number(relay, session->agent_number);
	if (!relay_is_per_session(relay)) {
		return false;
	}
	if (peer && !relay->is_ending && !has_session(peer, session) && !is_opening(peer, NULL)) {
		end(peer);
	}
	return !session->is_deleted;
}
