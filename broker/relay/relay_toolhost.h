/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_TOOLHOST_H
#define BROKER_RELAY_RELAY_TOOLHOST_H

#include "broker/session/hop.h"

/* Files and terminals served by the broker. */

/* initialize: what the editor can show, and what the agent is told it may ask for. */
bool relay_toolhost_greet(struct peer *peer, const struct call *call, struct error *err);

void relay_toolhost_call(struct peer *peer, const struct call *call);

/* The edits that show our terminals in a message of the agent's; after all others. */
bool relay_toolhost_edit(struct peer *peer, const struct call *call, struct error *err);

/* What the editor has not been told of the session's terminals; max-queue does not hold it up. */
void relay_toolhost_flush_session(struct peer *peer, const struct session *session);
void relay_toolhost_end_session(struct peer *peer, const char *agent_id);

/* The agent has ended: the last state of its terminals is shown, and they end. */
void relay_toolhost_end(struct peer *peer);

#endif
