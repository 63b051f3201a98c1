/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_GUARD_H
#define BROKER_GATE_GRANT_GUARD_H

#include "broker/gate/grant_answer.h"
#include "broker/session/hop.h"

/* Whether guard-paths concerns an operation: it changes the user's own files, and no sync asks. */
bool grant_guards_write(const struct peer *peer, enum policy_operation operation);

/* What is allowed is asked about, where it writes such a file; an "always" of the user holds. */
void grant_guard_decide(const struct peer *peer, const struct session *session,
	const struct subject *subject, struct grant_decision *decision);

#endif
