/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_EDITOR_H
#define BROKER_RELAY_RELAY_EDITOR_H

#include "broker/session/hop.h"

/* Handles lines that arrive from the editor. */

bool relay_on_editor_frame(void *data, const struct frame *frame);

/* Handles an earlier message, or one that was set aside, as if it arrived now. */
bool relay_on_editor_call(struct relay *relay, const struct call *call);

/*
 * The same for a message that has waited for this agent; it goes to this agent even if another
 * would be chosen now.
 */
void relay_on_parked_call(struct peer *peer, const struct call *call);

/* Passes on a request of the editor. Its agent is known and ready, and has its roots. */
void relay_pass_editor_request(struct peer *peer, const struct call *call);

#endif
