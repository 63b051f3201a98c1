/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_LOOKUP_H
#define BROKER_AGENT_MCP_LOOKUP_H

#include <ev.h>

#include "broker/agent/mcp_commands.h"
#include "providers/provider.h"

/* Asks the sandbox, by one process in it, which commands it has. Loop thread only. */
struct mcp_lookup;

struct mcp_lookup_config {
	struct ev_loop *loop;
	struct sandbox *sandbox;
	const char *const *env; // what a server of the agent's will have
	const char *cwd;        // the session's directory, a runtime path
	int timeout_ms;         // for the answer, the start included
};

/*
 * Raises done once, never from inside; then the states of the commands are set, or
 * why_unknown says why they are not known. done may destroy the lookup. The
 * commands are borrowed until then; there is at least one.
 */
struct mcp_lookup *mcp_lookup_start(const struct mcp_lookup_config *config,
	struct mcp_commands *commands, void (*done)(void *data), void *data);

/* Ends it and what it started; raises nothing more. NULL is fine. */
void mcp_lookup_destroy(struct mcp_lookup *lookup);

#endif
