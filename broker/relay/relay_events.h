/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_EVENTS_H
#define BROKER_RELAY_RELAY_EVENTS_H

#include "broker/session/hop.h"

/*
 * The events of a session that sync and policy depend on. The tables of methods raise them (struct
 * method, raise and raise_answered), so that no listener needs to know the method names of an ACP
 * version: in version 1, for example, the answer to a prompt ends the turn. Each returns true if a
 * listener has set the message aside or answered it.
 */

/* A prompt is ready for its agent. Listeners: first policy on the agent's mode, then sync. */
bool relay_turn_begins(struct peer *peer, const struct call *call);

/* The agent has ended the turn of this prompt with the message in hand. Listener: sync. */
bool relay_turn_ends(struct request *request, const struct call *answer);

/* The agent wants to use a tool, or asks for permission (method.operation). Listener: policy. */
bool relay_tool_asks(struct peer *peer, const struct call *call);

#endif
