/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_HELD_H
#define BROKER_GATE_GRANT_HELD_H

#include "broker/ledger/keeper.h"
#include "broker/session/hop.h"

/*
 * Asks the user about changes of guarded files that a sync has held (sync/held.h): once per sync,
 * in the session of that sync. Nothing waits for the answer. After a yes another sync runs, at once
 * or at the end of the current turn. After a no the question comes again only if the change
 * differs. Without an answer it comes again at the next sync. Policy can refuse for the user, as
 * for a permission request of the kind "edit", but cannot allow.
 */
void grant_held_on_synced(
	struct peer *peer, const struct keeper_event *event, const struct sync_result *result);

/* The session is closed: withdraws the questions asked in it. */
void grant_held_withdraw(struct relay *relay, const char *session_id);

#endif
