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
 * Drops an answer to a request that was already answered, or was never made. If it has created a
 * session, which nobody knows, that is closed.
 */
void relay_due_take_late(struct peer *peer, const struct call *call);

/* Another agent takes the place of this one, and its requests have the same ids again. */
void relay_due_forget(struct peer *peer);

#endif
