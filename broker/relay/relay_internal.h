/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_INTERNAL_H
#define BROKER_RELAY_RELAY_INTERNAL_H

#include "broker/relay/relay.h"
#include "broker/session/hop.h"

/* What relay.c does for the other files of the relay. */

/* The agent of relay_running_peer, started where none runs. NULL while ending. */
struct peer *relay_current_peer(struct relay *relay);

/* A further agent, whatever runs already. NULL while ending, and over RELAY_PEERS_MAX. */
struct peer *relay_further_peer(struct relay *relay);

/* An agent answers nothing any more, and why (void * for the listener). */
void relay_peer_down(void *data, const struct error *failure);

/* Nothing comes from the editor any more: says so, once. */
void relay_editor_gone(struct relay *relay);

#endif
