/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_PROMPT_NOTE_H
#define BROKER_RELAY_PROMPT_NOTE_H

#include "broker/session/hop.h"

/*
 * A prompt that names a workspace as it is called here goes to an agent that has it elsewhere:
 * adds a block of text after the user's own, which says where that is. The user's words stay as
 * they are, since a path may be what they are about. Once for each agent of a session.
 */
bool prompt_note_add(struct peer *peer, struct session *session, const struct call *call,
	struct error *err) ATTR_NODISCARD;

#endif
