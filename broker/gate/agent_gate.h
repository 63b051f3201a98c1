/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_AGENT_GATE_H
#define BROKER_GATE_AGENT_GATE_H

#include "broker/session/hop.h"

/*
 * What is refused of an agent whatever it is about, before policy looks at what it asks for. Where
 * the broker decides - by a policy, as the ToolHost, for a sandbox that is not this machine's
 * directories - a message must mean the same to everybody who reads it (base/json_names.h).
 */

/* False, with INVALID_PARAMS, where the message's own members do not: it is no message then. */
bool agent_gate_takes(
	const struct peer *peer, const struct message *message, struct error *err) ATTR_NODISCARD;

/*
 * True where a request was answered here: one whose params do not, one of the broker's own
 * (_broker/…), which is the editor's to ask, and one that ACP does not know of, where the policy
 * denies everything.
 */
bool agent_gate_request(struct peer *peer, const struct call *call);

/*
 * True where a notification goes no further: for the last two reasons, and where it is a request
 * of ACP's that lacks its id.
 */
bool agent_gate_notification(struct peer *peer, const struct call *call);

#endif
