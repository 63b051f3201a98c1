/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_AGENT_H
#define BROKER_RELAY_RELAY_AGENT_H

#include "broker/session/hop.h"

/* A line of an agent's has come in. */

bool relay_on_agent_frame(void *data, const struct frame *frame);
void relay_on_agent_drained(void *data); // it has read: what waited for that goes on

/* A request or notification of the agent's that was set aside: handles it as if it came now. */
void relay_on_agent_call(struct peer *peer, const struct call *call);
void relay_on_agent_request(struct peer *peer, const struct call *call);

/* An agent's answer to what the editor asked. The request is freed. */
void relay_pass_response(struct relay *relay, struct request *request, const struct call *call);

/* A request of the agent's that policy has let pass (or has nothing to say on). */
void relay_pass_agent_request(struct peer *peer, const struct call *call);

#endif
