/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_SYNC_H
#define BROKER_RELAY_RELAY_SYNC_H

#include "broker/ledger/keeper.h"
#include "broker/session/hop.h"

/*
 * The workspaces of an agent's sandbox, kept in step at the turns of its
 * sessions: a session's directories are synced before it is opened, a prompt waits until
 * what the user did is there, its answer until what the agent did is here. Of an agent
 * whose sandbox needs no sync nothing here does anything.
 */

/* Answers what waits with a failure; raises nothing more. */
void relay_sync_finish(struct peer *peer, const struct error *failure);

/* Whether the workspaces of this agent are kept; its sandbox is ready. */
bool relay_needs_sync(const struct peer *peer);

/*
 * These directories are about to become roots of the sandbox: their records say so before. False:
 * there is nothing to wait for. And they could not, for this reason.
 */
bool relay_sync_announce(
	struct peer *peer, char *const *directories, sandbox_done *done, void *data);
void relay_sync_renounce(struct peer *peer, char *const *directories, const struct error *err);

/*
 * Opens the roots of the sandbox that are not kept yet, for a session in these directories; done is
 * raised later, with the first error. False: there is nothing to wait for.
 */
bool relay_sync_open(struct peer *peer, char *const *directories, sandbox_done *done, void *data);

/* The session's first id is known: it is written down. */
void relay_sync_add_session(struct peer *peer, const struct session *session);

/* What the editor has chosen in it is written down, too. */
void relay_sync_note_choices(struct relay *relay, const struct session *session);

/*
 * It was closed, or is forgotten: the record of the agent that had it last, which may have ended,
 * has it no longer, and others may open it (struct relay *; void * for the table of sessions).
 */
void relay_sync_remove_session(void *relay, const struct session *session);

/* The session was answered, so that the editor knows it: tells what its first sync had to say. */
void relay_sync_tell(struct relay *relay, const struct request *request);

/* The session that was opened or prompted last: it is told what belongs to no other. */
void relay_sync_note_session(struct peer *peer, const char *id);

/*
 * Nothing of the agent's runs any more: collects for the last time. True: the peer is
 * gone when that has ended, by relay_ops.peer_gone.
 */
bool relay_sync_close(struct peer *peer);

/* Nothing is collected any more: it was, or never will be. */
void relay_sync_give_up(struct peer *peer);

/* Nothing of it runs: it collects for the last time, or has. */
bool relay_sync_has_closed(const struct peer *peer);

#endif
