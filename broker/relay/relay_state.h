/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_STATE_H
#define BROKER_RELAY_RELAY_STATE_H

#include "broker/ledger/keeper.h"
#include "broker/session/hop.h"

/*
 * _broker/session/state: tells the editor about changes of session records. An editor may treat an
 * unknown notification as an error. So it goes only to editors that ask for it in initialize, with
 * clientCapabilities._meta.broker.state = true. docs/schemas/session-state.json describes its
 * params.
 */

/* Reads from the editor's initialize whether it wants the notification. */
void relay_state_greet(struct relay *relay, const struct call *call);
void relay_state_want(
	struct relay *relay, bool is_wanted); // the same, from a value that was read before

/*
 * A record of this agent has a new state. Its sessions are named by the editor's ids; if the agent
 * has ended, by the agent's ids (peer is NULL once it is gone).
 */
void relay_state_tell(struct relay *relay, struct peer *peer, const struct keeper_state *state);

#endif
