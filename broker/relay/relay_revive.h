/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_REVIVE_H
#define BROKER_RELAY_RELAY_REVIVE_H

#include "broker/session/hop.h"

/*
 * When an agent ends, its sandbox is kept, with its roots and their state, until somebody needs an
 * agent again or the broker ends. It is then called resting.
 */

/*
 * The agent has ended. True if its sandbox rests, or gets another agent at once; false if the
 * sandbox ends.
 */
bool relay_revive_rest(struct peer *peer);

/*
 * Starts an agent in a resting sandbox. The agent must be initialized; messages to it wait. False
 * if an agent runs there already, or if the sandbox is gone.
 */
bool relay_revive(struct peer *peer);
struct peer *relay_revive_any(struct relay *relay); // NULL: no sandbox rests

/*
 * The same in the sandbox that has this directory as a root; NULL if none of the resting ones has
 * it.
 */
struct peer *relay_revive_with_root(struct relay *relay, const char *local);

/* The broker ends: collects from a resting sandbox. May free the peer. */
void relay_revive_end(struct peer *peer);

#endif
