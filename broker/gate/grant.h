/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_H
#define BROKER_GATE_GRANT_H

/*
 * This folder decides on what an agent asks for, before it is served: it asks policy and what is
 * remembered, follows links, asks the user, and writes the audit log. Mass deletions and changes
 * of guarded files that a sync has held are asked about here, too. It knows sessions and requests.
 * It does not know who serves what it lets pass, nor how: the relay hands it each request, and gets
 * it back by struct relay_ops. broker/methods and the relay use it.
 */

#include "broker/session/hop.h"

/* Policy on a request of an agent's, as each of them comes in. */

/* A method that means MEANS_TOOL. True where it was answered or set aside; false: it passes. */
bool grant_intercept(struct peer *peer, const struct call *call);

#endif
