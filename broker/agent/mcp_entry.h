/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_ENTRY_H
#define BROKER_AGENT_MCP_ENTRY_H

#include "acp/path_map.h"
#include "base/json_doc.h"

/* An element of mcpServers (ACP, "Session setup", MCP servers), as far as the broker looks. */
struct mcp_entry {
	const struct json_doc *doc; // borrowed
	json_node node;
	char *name;         // owned; NULL: it has none
	char *url;          // owned; of the types http and sse; otherwise NULL
	char *command;      // owned; of stdio, as the sandbox calls it; otherwise NULL
	char *path;         // owned; the PATH in its env, or ""; NULL without a command's form
	struct span quoted; // its command in the document, with the quotes
};

/* Every element is one; what is not understood of it is NULL. */
void mcp_entry_init(struct mcp_entry *entry, const struct path_map *map, const struct json_doc *doc,
	json_node node);
void mcp_entry_finish(struct mcp_entry *entry);

#endif
