/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_EDITOR_H
#define BROKER_RELAY_RELAY_EDITOR_H

#include "broker/session/hop.h"

/* A line of the editor's has come in. */

bool relay_on_editor_frame(void *data, const struct frame *frame);

/* A message that came before, or was set aside: handles it as if it came now. */
bool relay_on_editor_call(struct relay *relay, const struct call *call);

/* The same of one that waited for this agent, whichever would be chosen now. */
void relay_on_parked_call(struct peer *peer, const struct call *call);

/* A request of the editor's whose agent is known and ready, and has its roots. */
void relay_pass_editor_request(struct peer *peer, const struct call *call);

#endif
