/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_MCP_CONFIG_H
#define BROKER_CONFIG_MCP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/settings.h"

/* An [mcp "NAME"] section: an MCP server that the agent connects to from inside the sandbox. */
enum mcp_type { MCP_STDIO, MCP_HTTP, MCP_SSE };

struct mcp_server {
	char *name;
	enum mcp_type type;
	char *command;       // for MCP_STDIO, else NULL
	char **args;         // NULL-terminated
	char **env;          // NULL-terminated NAME=value; the variables of secret_names come last
	char *url;           // for MCP_HTTP and MCP_SSE, else NULL
	char **headers;      // NULL-terminated "NAME: value"; may be secret
	char **secret_names; // NULL-terminated names of variables in the broker's environment
};

extern const struct setting_key mcp_keys[];
extern const size_t mcp_key_count;

/* Returns "stdio", "http" or "sse", as ACP spells it. */
const char *mcp_type_name(enum mcp_type type);

/*
 * Checks that the keys of a section fit together; each key alone was checked before. On
 * ERROR_CONFIG *out_key is the key at fault, or NULL if it is the whole section.
 */
bool mcp_config_check(
	const struct settings *settings, const char **out_key, struct error *err) ATTR_NODISCARD;

/*
 * Reads a checked section. ERROR_CONFIG if a variable of secret-env is missing from the environment
 * (the broker's, NULL-terminated). The caller finishes the server even then.
 */
bool mcp_server_load(struct mcp_server *server, const char *name, const struct settings *settings,
	const char *const *environment, struct error *err) ATTR_NODISCARD;
void mcp_server_finish(struct mcp_server *server);

/* Writes the server as an element of mcpServers (ACP, "Session setup", MCP servers). */
void mcp_server_write(const struct mcp_server *server, struct json_writer *writer);

#endif
