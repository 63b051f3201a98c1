/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_AGENT_H
#define BROKER_RELAY_RELAY_AGENT_H

#include "broker/session/hop.h"

/* Handles lines that arrive from an agent. */

bool relay_on_agent_frame(void *data, const struct frame *frame);
void relay_on_agent_drained(void *data); // the agent has read: messages that waited for that go on

/* Handles an agent's request or notification that was set aside, as if it arrived now. */
void relay_on_agent_call(struct peer *peer, const struct call *call);
void relay_on_agent_request(struct peer *peer, const struct call *call);

/* Passes on an agent's answer to the editor's request. The request is freed. */
void relay_pass_response(struct relay *relay, struct request *request, const struct call *call);

/* Passes on an agent's request that policy allows, or about which policy does not decide. */
void relay_pass_agent_request(struct peer *peer, const struct call *call);

#endif
