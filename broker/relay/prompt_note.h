/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_PROMPT_NOTE_H
#define BROKER_RELAY_PROMPT_NOTE_H

#include "broker/session/hop.h"

/*
 * Tells an agent where its workspace is, if a prompt names the workspace by its path on this
 * machine and the agent has it elsewhere: adds a block of text after the user's own. The user's
 * words stay as they are, because the prompt may be about the path itself. Does so once for each
 * agent of a session.
 */
bool prompt_note_add(struct peer *peer, struct session *session, const struct call *call,
	struct error *err) ATTR_NODISCARD;

#endif
