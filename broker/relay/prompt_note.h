/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_PROMPT_NOTE_H
#define BROKER_RELAY_PROMPT_NOTE_H

#include "broker/session/hop.h"

/*
 * If a prompt names a workspace by its path on this machine, but the agent has it elsewhere: adds a
 * block of text after the user's own that says where. The user's words stay as they are, because
 * the prompt may be about the path itself. Once for each agent of a session.
 */
bool prompt_note_add(struct peer *peer, struct session *session, const struct call *call,
	struct error *err) ATTR_NODISCARD;

#endif
