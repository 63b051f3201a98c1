/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_DELETIONS_H
#define BROKER_GATE_GRANT_DELETIONS_H

#include "broker/ledger/keeper.h"
#include "broker/session/hop.h"

/*
 * What becomes of mass deletions (keeper_listener.on_question). Policy decides as on a
 * permission request of the kind "delete" for the workspace; where it asks, the user is
 * asked, in the session whose sync it is. Where nobody can be asked or answers, what was
 * deleted is given back. About what is gone here, and would be deleted in the sandbox, the user
 * is always asked. keeper_decide follows, maybe before this returns.
 */
void grant_deletions_ask(
	struct peer *peer, const struct keeper_event *event, const struct deletions *deletions);

/* The session was cancelled: what is asked in it is answered with no, and withdrawn. */
void grant_deletions_cancel(struct relay *relay, const char *session_id);

/* The agent is gone, and with it what was asked in its sessions: the answer is no. */
void grant_deletions_drop(struct peer *peer);

#endif
