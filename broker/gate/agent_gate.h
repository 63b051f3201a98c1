/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_AGENT_GATE_H
#define BROKER_GATE_AGENT_GATE_H

#include "broker/session/hop.h"

/*
 * Refuses messages of an agent by their form, before policy looks at their content. Where the
 * broker decides something for the agent (by a policy, as the ToolHost, or because the sandbox does
 * not have this machine's directories) a message must mean the same to everybody who reads it
 * (base/json_names.h).
 */

/*
 * Checks the member names of the message itself. False with INVALID_PARAMS if they are ambiguous;
 * then it does not count as a message.
 */
bool agent_gate_takes(
	const struct peer *peer, const struct message *message, struct error *err) ATTR_NODISCARD;

/*
 * True if this answered the request with an error: its params are ambiguous, or it is one of the
 * broker's own methods (_broker/…), which only the editor may call, or ACP does not know it and the
 * policy denies everything.
 */
bool agent_gate_request(struct peer *peer, const struct call *call);

/*
 * True if the notification is dropped: for the last two of these reasons, or because it is a
 * request of ACP without its id.
 */
bool agent_gate_notification(struct peer *peer, const struct call *call);

#endif
