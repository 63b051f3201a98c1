/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_MCP_CONFIG_H
#define BROKER_CONFIG_MCP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/settings.h"

/* An [mcp "NAME"] section: a server that the agent connects to, inside the sandbox. */
enum mcp_type { MCP_STDIO, MCP_HTTP, MCP_SSE };

struct mcp_server {
	char *name;
	enum mcp_type type;
	char *command;       // of MCP_STDIO; otherwise NULL
	char **args;         // NULL-terminated
	char **env;          // NULL-terminated NAME=value; those of secret_names stand at its end
	char *url;           // of MCP_HTTP and MCP_SSE; otherwise NULL
	char **headers;      // NULL-terminated "NAME: value"; may be secret
	char **secret_names; // NULL-terminated; variables of the broker's environment
};

extern const struct setting_key mcp_keys[];
extern const size_t mcp_key_count;

/* "stdio", "http" or "sse": as ACP spells it. */
const char *mcp_type_name(enum mcp_type type);

/*
 * Checks what the keys of a section, each good by itself, say together.
 * ERROR_CONFIG; *out_key is the key it is about, or NULL for the section.
 */
bool mcp_config_check(
	const struct settings *settings, const char **out_key, struct error *err) ATTR_NODISCARD;

/*
 * Reads a checked section. ERROR_CONFIG where a variable of secret-env is not set
 * in the environment (NULL-terminated, the broker's); the server is finished by
 * the caller all the same.
 */
bool mcp_server_load(struct mcp_server *server, const char *name, const struct settings *settings,
	const char *const *environment, struct error *err) ATTR_NODISCARD;
void mcp_server_finish(struct mcp_server *server);

/* Writes it as an element of mcpServers (ACP, "Session setup", MCP servers). */
void mcp_server_write(const struct mcp_server *server, struct json_writer *writer);

#endif
