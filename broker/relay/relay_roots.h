/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_ROOTS_H
#define BROKER_RELAY_RELAY_ROOTS_H

#include "broker/session/hop.h"

/* Messages that wait until the sandbox is ready, and until it has their roots. */

void relay_roots_finish(struct peer *peer); // once nothing waits; before the agent is destroyed

/* Sets the message aside until the agent's sandbox is ready. ERROR_LIMIT. */
bool relay_wait_until_ready(
	struct peer *peer, const struct call *call, struct error *err) ATTR_NODISCARD;
void relay_peer_ready(void *data);

/*
 * The broker ends, but messages that wait for the sandbox are still handled: the agent stops after
 * them.
 */
void relay_stop_when_ready(struct peer *peer);
bool relay_stops_when_ready(const struct peer *peer);

/*
 * For session/new, load, resume or fork: makes their directories roots of the sandbox, and asks the
 * sandbox for the commands of the MCP servers. Then the request goes on to the agent; if the
 * sandbox takes no more roots, to another agent. False: nothing of this is needed, and the request
 * goes on at once.
 */
bool relay_open_roots(struct peer *peer, const struct call *call);

/* Callbacks of STAGE_ROOTS. */
void relay_roots_on_left(struct waiting *waiting, const struct error *failure);
void relay_roots_on_gone(struct waiting *waiting);

/* Answers all messages that wait for this agent with a failure. */
void relay_fail_waiting(struct peer *peer, const struct error *failure);

#endif
