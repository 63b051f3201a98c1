/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_TOOLHOST_H
#define BROKER_RELAY_RELAY_TOOLHOST_H

#include "broker/session/hop.h"

/* Files and terminals that the broker serves. */

/* initialize: reads what the editor can show, and edits the capabilities that the agent sees. */
bool relay_toolhost_greet(struct peer *peer, const struct call *call, struct error *err);

void relay_toolhost_call(struct peer *peer, const struct call *call);

/* Adds the edits that show our terminals in a message of the agent, after all other edits. */
bool relay_toolhost_edit(struct peer *peer, const struct call *call, struct error *err);

/* Sends the editor the latest state of the session's terminals, regardless of max-queue. */
void relay_toolhost_flush_session(struct peer *peer, const struct session *session);
void relay_toolhost_end_session(struct peer *peer, const char *agent_id);

/* The agent has ended: shows the last state of its terminals and ends them. */
void relay_toolhost_end(struct peer *peer);

#endif
