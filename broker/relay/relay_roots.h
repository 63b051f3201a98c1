/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_ROOTS_H
#define BROKER_RELAY_RELAY_ROOTS_H

#include "broker/session/hop.h"

/* What waits until the sandbox is ready, and until it has the roots. */

void relay_roots_finish(struct peer *peer); // once nothing waits; before the agent is destroyed

/* Sets the message aside until the agent's sandbox is ready. ERROR_LIMIT. */
bool relay_wait_until_ready(
	struct peer *peer, const struct call *call, struct error *err) ATTR_NODISCARD;
void relay_peer_ready(void *data);

/* The broker ends, and what waits for the sandbox is still done: the agent stops after it. */
void relay_stop_when_ready(struct peer *peer);
bool relay_stops_when_ready(const struct peer *peer);

/*
 * Makes the directories of a session/new, load, resume or fork roots of the
 * sandbox, and asks that for the commands of its MCP servers; then it goes on to
 * the agent, or, where the sandbox takes no more roots, to a further one. False:
 * it needs none of this, and goes on at once.
 */
bool relay_open_roots(struct peer *peer, const struct call *call);

/* Of STAGE_ROOTS. */
void relay_roots_on_left(struct waiting *waiting, const struct error *failure);
void relay_roots_on_gone(struct waiting *waiting);

/* Answers what waits for this agent with a failure. */
void relay_fail_waiting(struct peer *peer, const struct error *failure);

#endif
