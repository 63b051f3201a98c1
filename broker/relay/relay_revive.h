/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_REVIVE_H
#define BROKER_RELAY_RELAY_REVIVE_H

#include "broker/session/hop.h"

/*
 * An agent that has ended leaves its sandbox: that rests, with its roots and what is kept of them,
 * until somebody asks for an agent again, or until the broker ends.
 */

/* The agent is gone. True where its sandbox rests for another, or gets one; false: it ends. */
bool relay_revive_rest(struct peer *peer);

/*
 * Starts an agent in the sandbox of one that has ended; it has to be greeted, and what is sent
 * to it waits. False: it runs, or the sandbox is not there any more.
 */
bool relay_revive(struct peer *peer);
struct peer *relay_revive_any(struct relay *relay); // NULL: none rests

/* The same in the sandbox that has this directory as a root; NULL: none that rests has. */
struct peer *relay_revive_with_root(struct relay *relay, const char *local);

/* The broker ends: what rests is collected. May free the peer. */
void relay_revive_end(struct peer *peer);

#endif
