/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_LOOKUP_H
#define BROKER_AGENT_MCP_LOOKUP_H

#include <ev.h>

#include "broker/agent/mcp_commands.h"
#include "providers/provider.h"

/* Runs one process in the sandbox to find out which commands exist there. Loop thread only. */
struct mcp_lookup;

struct mcp_lookup_config {
	struct ev_loop *loop;
	struct sandbox *sandbox;
	const char *const *env; // the environment of an MCP server that the agent starts
	const char *cwd;        // the session's directory, a runtime path
	int timeout_ms;         // for the answer, including the start
};

/*
 * Calls done once, never from inside; then the states of the commands are set, or why_unknown gives
 * the reason. done may destroy the lookup. The commands, at least one, are borrowed until then.
 */
struct mcp_lookup *mcp_lookup_start(const struct mcp_lookup_config *config,
	struct mcp_commands *commands, void (*done)(void *data), void *data);

/* Ends it and its process; no callback follows. NULL is fine. */
void mcp_lookup_destroy(struct mcp_lookup *lookup);

#endif
