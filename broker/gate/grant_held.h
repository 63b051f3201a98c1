/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_HELD_H
#define BROKER_GATE_GRANT_HELD_H

#include "broker/ledger/keeper.h"
#include "broker/session/hop.h"

/*
 * Asks the user about changes of guarded files that a sync has held (sync/held.h): once a sync,
 * in the session whose sync it is. Nothing waits for the answer. A yes is followed by a sync, at
 * once or at the end of the turn that is under way. What was refused is asked about again when
 * it is another change; what nobody has answered, by the next sync. Policy can refuse for the
 * user, as on a permission request of the kind "edit", and cannot allow.
 */
void grant_held_on_synced(
	struct peer *peer, const struct keeper_event *event, const struct sync_result *result);

/* The session is closed: what is asked in it is withdrawn. */
void grant_held_withdraw(struct relay *relay, const char *session_id);

#endif
