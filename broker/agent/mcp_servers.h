/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_SERVERS_H
#define BROKER_AGENT_MCP_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

#include "acp/message.h"
#include "acp/path_map.h"
#include "acp/splice.h"
#include "base/attr.h"
#include "base/error.h"
#include "broker/agent/mcp_commands.h"
#include "broker/config/mcp_config.h"

/*
 * What becomes of the mcpServers of a session/new, load, resume or fork on their
 * way to the agent. The agent starts and reaches them, inside the sandbox:
 *
 * - a server of a name that the profile has is replaced by the profile's; the
 *   profile's others are added at the end;
 * - a command that the sandbox does not have, and a URL of this machine's own
 *   loopback where the sandbox has another, are left out, which the user is told;
 * - a command below a root is called as it is called there.
 *
 * What is not understood is the agent's to refuse. Everything else of the list
 * stays as it is, to the byte.
 */
enum { MCP_NOTICES_MAX = 16 }; // that name a server each; further ones are counted

struct mcp_context {
	const struct mcp_server *servers; // of the profile; borrowed
	size_t server_count;
	const struct path_map *map;          // of the sandbox; borrowed
	const struct mcp_commands *commands; // what the sandbox has; NULL: nobody has asked it
	bool has_other_files;                // this machine's commands are not the sandbox's
	bool has_other_loopback;             // nor is its localhost
	bool lacks_http;                     // the agent takes no servers of this type
	bool lacks_sse;
};

/* False: every list passes as it is. */
bool mcp_servers_concern(const struct mcp_context *context);

/*
 * Adds the commands that the sandbox has to be asked about. ERROR_LIMIT for a
 * list of more than JSON_DOC_TOKENS_MAX values.
 */
bool mcp_servers_collect(const struct mcp_context *context, const struct message *message,
	struct mcp_commands *commands, struct error *err) ATTR_NODISCARD;

/*
 * Adds the edits, and to *notices (base/words.h) what the user is to know.
 * ERROR_LIMIT as above, and where the edits are too large.
 */
bool mcp_servers_edit(const struct mcp_context *context, const struct message *message,
	struct splice *splice, char ***notices, struct error *err) ATTR_NODISCARD;

#endif
