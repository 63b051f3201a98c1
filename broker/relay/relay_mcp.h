/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_MCP_H
#define BROKER_RELAY_RELAY_MCP_H

#include "broker/agent/mcp_lookup.h"
#include "broker/session/hop.h"

/* The MCP servers of a session. */

/* Reads from the result of initialize which servers the agent supports. */
void relay_mcp_learn(struct relay *relay, const struct call *call);

/*
 * Asks the sandbox which commands of the request's servers exist there. done follows, unless the
 * lookup is destroyed first. NULL if there is nothing to ask.
 */
struct mcp_lookup *relay_mcp_ask(struct peer *peer, const struct call *call,
	struct mcp_commands *commands, void (*done)(void *data), void *data);

/* Edits the list on its way to the agent, and keeps in the request the notices for the user. */
bool relay_mcp_edit(struct peer *peer, struct request *request, const struct call *call,
	struct error *err) ATTR_NODISCARD;

/* The session's request was answered: tells the user. */
void relay_mcp_tell(struct relay *relay, const struct request *request);

#endif
