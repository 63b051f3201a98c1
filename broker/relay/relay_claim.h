/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_CLAIM_H
#define BROKER_RELAY_RELAY_CLAIM_H

#include "broker/session/hop.h"

/*
 * session/load and session/resume of a session that this broker does not know: the records say
 * which broker had it. Where that lives, the request is refused (SESSION_IN_USE); where it
 * is about to end, it is waited for. Otherwise the session is taken over
 * (broker/ledger/record_claim.h), and its request goes on as any other: the sandbox is found or
 * made, its first sync brings here what was left in it, and the agent has the last word. A session
 * that no record has may be known to the agent all the same.
 */
enum {
	CLAIM_LOOK_MS = 200,   // between two looks at who is about to end
	CLAIM_DOUBT_MS = 1000, // a broker whose editor has just left does not say so at once
};

/* True where the request waits, or was answered. */
bool relay_claim_holds(struct relay *relay, const struct call *call);

/* The session is there: what the editor has chosen in it, as the records say. */
void relay_claim_choices(
	struct relay *relay, const struct request *request, struct session *session);

/* The session is there: it is this broker's from now on, and what it lost is told. */
void relay_claim_opened(
	struct relay *relay, const struct request *request, const struct session *session);

/* Its keeper was destroyed: what no record of it has was not taken over. */
void relay_claim_peer_gone(const struct peer *peer);

/* The agent's error (JSON): true where the editor was told more than that says. */
bool relay_claim_on_error(struct relay *relay, struct request *request, struct span error);

/* A request was answered with a failure: what was taken over for it is let go. */
void relay_claim_drop(struct relay *relay, struct span id);

/* Of STAGE_CLAIM. */
void relay_claim_on_left(struct waiting *waiting, const struct error *failure);
void relay_claim_on_gone(struct waiting *waiting);

void relay_claim_finish(struct relay *relay); // frees all

#endif
