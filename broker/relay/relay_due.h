/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_DUE_H
#define BROKER_RELAY_RELAY_DUE_H

struct call;
struct peer;
struct request;

/*
 * Deadlines for requests that open a session or log in. If the agent is silent for session-timeout
 * or authenticate-timeout, the broker answers the editor (TIMEOUT_EXCEEDED).
 */

extern const struct deadline relay_due_session, relay_due_authenticate; // for struct method

/* A request was sent to its agent: starts its deadline. */
void relay_due_watch(struct request *request);

/*
 * Drops an answer to a request that was already answered, or that we never made. If the answer says
 * that a session was created, closes that session, because the editor does not know it.
 */
void relay_due_take_late(struct peer *peer, const struct call *call);

/* Call it when a new agent replaces this one, because the ids of requests then begin again. */
void relay_due_forget(struct peer *peer);

#endif
