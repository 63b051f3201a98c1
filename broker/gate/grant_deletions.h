/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_DELETIONS_H
#define BROKER_GATE_GRANT_DELETIONS_H

#include "broker/ledger/keeper.h"
#include "broker/session/hop.h"

/*
 * Decides what happens to mass deletions (keeper_listener.on_question). Policy decides as for a
 * permission request of the kind "delete" in the workspace. If it asks, the broker asks the user in
 * the session of that sync. If nobody can be asked or nobody answers, the deleted files are
 * restored. Deletions on this machine that the sync would repeat in the sandbox are always asked
 * about. keeper_decide follows, maybe before this returns.
 */
void grant_deletions_ask(
	struct peer *peer, const struct keeper_event *event, const struct deletions *deletions);

/* The session was cancelled: answers its open questions with no, and withdraws them. */
void grant_deletions_cancel(struct relay *relay, const char *session_id);

/* The agent has ended: answers the open questions of its sessions with no. */
void grant_deletions_drop(struct peer *peer);

#endif
