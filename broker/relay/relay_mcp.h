/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_MCP_H
#define BROKER_RELAY_RELAY_MCP_H

#include "broker/agent/mcp_lookup.h"
#include "broker/session/hop.h"

/* The MCP servers of a session. */

/* The result of initialize: which servers the agent takes. */
void relay_mcp_learn(struct relay *relay, const struct call *call);

/*
 * Asks the sandbox which commands the servers of a request have; done follows,
 * unless the lookup is destroyed before. NULL: there is nothing to ask.
 */
struct mcp_lookup *relay_mcp_ask(struct peer *peer, const struct call *call,
	struct mcp_commands *commands, void (*done)(void *data), void *data);

/* Edits the list on its way to the agent; keeps in the request what the user is to know. */
bool relay_mcp_edit(struct peer *peer, struct request *request, const struct call *call,
	struct error *err) ATTR_NODISCARD;

/* The session was answered: tells the user. */
void relay_mcp_tell(struct relay *relay, const struct request *request);

#endif
