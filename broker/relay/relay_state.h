/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_STATE_H
#define BROKER_RELAY_RELAY_STATE_H

#include "broker/ledger/keeper.h"
#include "broker/session/hop.h"

/*
 * _broker/session/state: tells the editor what becomes of session records. A notification that it
 * does not know may be an error to an editor, so only who asks for it gets it, with
 * clientCapabilities._meta.broker.state = true in initialize.
 * docs/schemas/session-state.json has its params.
 */

/* The editor's initialize: whether it asks for them. */
void relay_state_greet(struct relay *relay, const struct call *call);
void relay_state_want(struct relay *relay, bool is_wanted); // the same, as it was read

/*
 * A record of this agent's has a new state. Its sessions are named as the editor knows them;
 * once the agent has ended, as the agent has (NULL: it is gone).
 */
void relay_state_tell(struct relay *relay, struct peer *peer, const struct keeper_state *state);

#endif
