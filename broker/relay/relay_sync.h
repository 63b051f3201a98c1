/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_SYNC_H
#define BROKER_RELAY_RELAY_SYNC_H

#include "broker/ledger/keeper.h"
#include "broker/session/hop.h"

/*
 * Keeps the workspaces of an agent's sandbox in step at the turns of its sessions. The directories
 * of a session are synced before it is opened. A prompt waits until the user's changes are in the
 * sandbox; its answer waits until the agent's changes are here. If the agent's sandbox needs no
 * sync, nothing here does anything.
 */

/* Answers waiting messages with a failure. No callback follows. */
void relay_sync_finish(struct peer *peer, const struct error *failure);

/* Whether the workspaces of this agent are synced; its sandbox is ready. */
bool relay_needs_sync(const struct peer *peer);

/*
 * relay_sync_announce: these directories are about to become roots of the sandbox; their records
 * must say so first. False if there is nothing to wait for. relay_sync_renounce: they did not
 * become roots; `err` says why.
 */
bool relay_sync_announce(
	struct peer *peer, char *const *directories, sandbox_done *done, void *data);
void relay_sync_renounce(struct peer *peer, char *const *directories, const struct error *err);

/*
 * Opens those roots of the sandbox that are not yet synced, for a session in these directories.
 * done follows later, with the first error. False if there is nothing to wait for.
 */
bool relay_sync_open(struct peer *peer, char *const *directories, sandbox_done *done, void *data);

/* The session's first id is known: writes it into the record. */
void relay_sync_add_session(struct peer *peer, const struct session *session);

/* Writes the editor's choices in the session into the record. */
void relay_sync_note_choices(struct relay *relay, const struct session *session);

/*
 * The session was closed or forgotten: removes it from the record of its last agent, which may have
 * ended. Then other brokers may open it. (struct relay *; void * for the table of sessions.)
 */
void relay_sync_remove_session(void *relay, const struct session *session);

/*
 * The session's request was answered, so the editor knows the session: shows the notices of its
 * first sync.
 */
void relay_sync_tell(struct relay *relay, const struct request *request);

/*
 * Remembers the session that was opened or prompted last: it gets the notices that belong to no
 * session.
 */
void relay_sync_note_session(struct peer *peer, const char *id);

/*
 * Call it when nothing of the agent runs any more: collects its changes for the last time. True:
 * relay_ops.peer_gone frees the peer after that.
 */
bool relay_sync_close(struct peer *peer);

/* Notes that nothing more will be collected: it is done, or given up. */
void relay_sync_give_up(struct peer *peer);

/* Whether the last collection has begun or ended, or was given up. */
bool relay_sync_has_closed(const struct peer *peer);

#endif
