/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_CLAIM_H
#define BROKER_RELAY_RELAY_CLAIM_H

#include "broker/session/hop.h"

/*
 * session/load and session/resume of a session that this broker does not know. The records say
 * which broker had it. If that broker lives, the request is refused (SESSION_IN_USE); if it is
 * about to end, the request waits for it. Otherwise this broker takes the session over
 * (broker/ledger/record_claim.h), and the request goes on like any other: the sandbox is found or
 * created, its first sync brings its changes here, and the agent decides whether it knows the
 * session. The agent may also know a session without a record.
 */
enum {
	CLAIM_LOOK_MS = 200,   // between two looks at a broker that is about to end
	CLAIM_DOUBT_MS = 1000, // a broker notices this late that its editor has left
};

/* True if the request waits or was answered. */
bool relay_claim_holds(struct relay *relay, const struct call *call);

/*
 * The sandbox_reference of the sandbox in which a session that was taken over has worked; `id` is
 * the raw id of the request. NULL: there is no such sandbox, or it has no reference. Borrowed.
 */
const char *relay_claim_reference(struct relay *relay, struct span id);

/* The session was opened: reads the editor's earlier choices in it from the records. */
void relay_claim_choices(
	struct relay *relay, const struct request *request, struct session *session);

/*
 * The session was opened: from now on this broker has it. Tells the editor what the session has
 * lost.
 */
void relay_claim_opened(
	struct relay *relay, const struct request *request, const struct session *session);

/* The peer's keeper was destroyed: gives up claims of sessions that none of its records has. */
void relay_claim_peer_gone(const struct peer *peer);

/*
 * Takes the agent's error (JSON). True if this has answered the editor with a more precise error.
 */
bool relay_claim_on_error(struct relay *relay, struct request *request, struct span error);

/* A request was answered with a failure: releases what was taken over for it. */
void relay_claim_drop(struct relay *relay, struct span id);

/* Callbacks of STAGE_CLAIM. */
void relay_claim_on_left(struct waiting *waiting, const struct error *failure);
void relay_claim_on_gone(struct waiting *waiting);

void relay_claim_finish(struct relay *relay); // frees all

#endif
