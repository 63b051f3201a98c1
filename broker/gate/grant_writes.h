/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_WRITES_H
#define BROKER_GATE_GRANT_WRITES_H

#include "broker/session/hop.h"

/*
 * Offers `allow-write = FOLDER` in the session when a program of a confined agent has failed to
 * write there. We learn this only from the output of programs (EROFS), which an agent can forge. So
 * the broker asks nothing and changes nothing: the session shows a line that the user may copy. The
 * sandbox decides which folders a line may name (sandbox_find_write_hint).
 */
enum {
	GRANT_WRITES_TOLD_MAX = 3,   // folders to suggest for each agent
	GRANT_WRITES_LOOKS_MAX = 64, // texts of an agent to search
	GRANT_WRITES_PATHS_MAX = 8,  // paths of one text that are checked with the sandbox
};

/*
 * Searches the output of an agent's tool or of a terminal in a session. NULL: a session with a turn
 * in progress.
 */
void grant_writes_look(struct peer *peer, const struct session *session, struct span text);

/* The same for an update of a tool call. */
void grant_writes_note(struct peer *peer, const struct call *call);

#endif
