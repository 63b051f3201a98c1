/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_MCP_CONNECT_H
#define BROKER_CLI_MCP_CONNECT_H

/*
 * The program's main if its first argument is MCP_CONNECT_WORD (broker/agent/mcp_door.h): an agent
 * has started it as an MCP server. It copies between its stdin and stdout and the broker's socket,
 * which the environment names. Returns the exit status.
 */
int mcp_connect_main(const char *const *environment);

#endif
