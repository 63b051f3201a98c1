/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_OWN_COPY_H
#define BROKER_RELAY_OWN_COPY_H

#include "broker/session/hop.h"

/*
 * Profiles in which each session has its own sandbox (copy-per = session), and therefore its own
 * agent. At the end of the session its agent ends, and its sandbox is collected and removed. The
 * record keeps a closed session, so that it can be loaded again under the same path. For other
 * profiles these functions do nothing.
 */

/*
 * Whether a request that opens a session can go to this agent. `mine` is the request's own entry on
 * the desk.
 */
enum own_copy_fit {
	OWN_COPY_FITS,
	OWN_COPY_TAKEN,  // another session has it: use own_copy_peer
	OWN_COPY_FAILED, // the session's earlier sandbox cannot be used
};
enum own_copy_fit own_copy_fit(struct peer *peer, const struct waiting *mine);

/* Another agent that has no session, or a new one. NULL: no further agent can be started. */
struct peer *own_copy_peer(struct relay *relay);

/* From now on a session has the peer's sandbox. */
void own_copy_note(struct peer *peer);
bool own_copy_has_session(const struct peer *peer);

/*
 * The session is about to be forgotten: its agent ends unless another session has it. True if the
 * record keeps the session.
 */
bool own_copy_forget(struct relay *relay, const struct session *session);

/* The session has ended: the agent is not restarted in this sandbox. */
bool own_copy_is_over(const struct peer *peer);

#endif
