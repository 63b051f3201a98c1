/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_AGENT_METHODS_H
#define BROKER_RELAY_RELAY_AGENT_METHODS_H

#include "broker/session/hop.h"

/* The row of an agent's method. Never NULL: unknown methods have a row too. */
const struct method *relay_agent_method_of(const struct message *message);

/* The row of a call of the broker's own MCP server (relay_mcp_exec.h). */
extern const struct method relay_mcp_exec_method;

#endif
