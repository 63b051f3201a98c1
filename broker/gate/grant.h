/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_H
#define BROKER_GATE_GRANT_H

/*
 * This folder decides about an agent's requests before anybody serves them. It asks policy and the
 * remembered answers, resolves links, asks the user, and writes the audit log. It also asks about
 * mass deletions, about changes of guarded files that a sync has held, and about connections. It
 * knows sessions and requests. It does not know who serves a request that it lets pass, nor how:
 * the relay hands it each request and gets it back through struct relay_ops. broker/methods and the
 * relay use it.
 */

#include "broker/session/hop.h"

/* Applies policy to each request of an agent as it arrives. */

/*
 * Takes a call whose method means MEANS_TOOL. True if the request was answered or set aside; false
 * if it passes.
 */
bool grant_intercept(struct peer *peer, const struct call *call);

#endif
