/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_DUE_H
#define BROKER_RELAY_RELAY_DUE_H

struct call;
struct peer;
struct request;

/*
 * A request that opens a session, or logs in, and its agent: where that is silent for
 * session-timeout or authenticate-timeout the editor is answered in its place (TIMEOUT_EXCEEDED).
 */

extern const struct deadline relay_due_session, relay_due_authenticate; // of struct method

/* A request went to its agent. */
void relay_due_watch(struct request *request);

/*
 * An answer to what was answered already, or was never asked: it is dropped. A session that it has
 * made, and nobody knows, is closed.
 */
void relay_due_take_late(struct peer *peer, const struct call *call);

/* Another agent is in its place, whose requests have the same ids again. */
void relay_due_forget(struct peer *peer);

#endif
