/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_GUARD_H
#define BROKER_GATE_GRANT_GUARD_H

#include "broker/gate/grant_answer.h"
#include "broker/session/hop.h"

/*
 * Whether guard-paths applies to an operation: the operation changes the user's own files, and no
 * sync will ask.
 */
bool grant_guards_write(const struct peer *peer, enum policy_operation operation);

/*
 * Turns "allowed" into "ask" if the operation writes a guarded file. An earlier "always" of the
 * user still holds.
 */
void grant_guard_decide(const struct peer *peer, const struct session *session,
	const struct subject *subject, struct grant_decision *decision);

#endif
