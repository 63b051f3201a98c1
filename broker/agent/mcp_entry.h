/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_ENTRY_H
#define BROKER_AGENT_MCP_ENTRY_H

#include "acp/path_map.h"
#include "base/json_doc.h"

/*
 * An element of mcpServers (ACP, "Session setup", MCP servers): the members that the broker needs.
 */
struct mcp_entry {
	const struct json_doc *doc; // borrowed
	json_node node;
	char *name;         // owned; may be NULL
	char *url;          // owned; for the types http and sse, else NULL
	char *command;      // owned; for stdio, as the sandbox names it, else NULL
	char *path;         // owned; the PATH in its env, or ""; NULL if it has no command
	struct span quoted; // its command in the document, including the quotes
};

/* Accepts every element. Members that cannot be read are NULL. */
void mcp_entry_init(struct mcp_entry *entry, const struct path_map *map, const struct json_doc *doc,
	json_node node);
void mcp_entry_finish(struct mcp_entry *entry);

#endif
