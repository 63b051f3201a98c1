/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_AGENT_GATE_H
#define BROKER_GATE_AGENT_GATE_H

#include "broker/session/hop.h"

/*
 * Refuses messages of an agent by their form, before policy looks at their content. If the broker
 * decides anything about the agent's messages (by a policy, as the ToolHost, or because the sandbox
 * does not have this machine's directories), every program must read a message in the same way
 * (base/json_names.h).
 */

/*
 * Checks the member names of the message itself. False with INVALID_PARAMS if they are ambiguous;
 * then it does not count as a message.
 */
bool agent_gate_takes(
	const struct peer *peer, const struct message *message, struct error *err) ATTR_NODISCARD;

/*
 * True if this has answered the request with an error. There are three reasons: its params are
 * ambiguous; its method is one of the broker's own (_broker/…), which only the editor may call; or
 * ACP does not know the method and the policy denies everything.
 */
bool agent_gate_request(struct peer *peer, const struct call *call);

/*
 * True if the notification is dropped: for the last two of these reasons, or because it is a
 * request of ACP without its id.
 */
bool agent_gate_notification(struct peer *peer, const struct call *call);

#endif
