/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_SERVERS_H
#define BROKER_AGENT_MCP_SERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp/message.h"
#include "acp/path_map.h"
#include "acp/splice.h"
#include "base/attr.h"
#include "base/error.h"
#include "broker/agent/mcp_commands.h"
#include "broker/config/mcp_config.h"

/*
 * Edits the mcpServers of a session/new, load, resume or fork on their way to the agent, which
 * starts and reaches them inside the sandbox:
 *
 * - A server with the same name as one of the profile is replaced by the profile's. The profile's
 *   other servers are added at the end, and after them the broker's own.
 * - A server whose command does not exist in the sandbox is left out. So is a server at a URL of
 *   this machine's loopback, if the sandbox has another loopback and cannot reach the port. The
 *   user is told.
 * - A command below a root gets its path in the sandbox.
 *
 * Elements that the broker does not understand pass unchanged; the agent refuses them. Everything
 * else in the list stays as it is, to the byte.
 */
enum { MCP_NOTICES_MAX = 16 }; // that name one server each; further ones are counted

struct mcp_context {
	const struct mcp_server *servers; // the profile's; borrowed
	size_t server_count;
	const struct mcp_server *own;        // the broker's own, added at the end; NULL: none
	const struct path_map *map;          // of the sandbox; borrowed
	const struct mcp_commands *commands; // the sandbox's commands; NULL: it was not asked
	bool has_other_files;                // this machine's commands do not exist in the sandbox
	bool has_other_loopback;             // nor does this machine's localhost
	/*
	 * Whether the sandbox reaches this port of this machine as localhost in spite of its own
	 * loopback; NULL: it reaches none. `reached_by` is the beginning of the profile's line that
	 * allows a port: "allow-host = localhost:"; NULL: no line can allow one.
	 */
	bool (*reaches_port)(const void *data, uint16_t port);
	const void *data;
	const char *reached_by;
	bool lacks_http; // the agent does not support servers of this type
	bool lacks_sse;
};

/* Whether a list may need edits; false: every list passes unchanged. */
bool mcp_servers_concern(const struct mcp_context *context);

/*
 * Adds the commands to look up in the sandbox. ERROR_LIMIT for a list of more than
 * JSON_DOC_TOKENS_MAX values.
 */
bool mcp_servers_collect(const struct mcp_context *context, const struct message *message,
	struct mcp_commands *commands, struct error *err) ATTR_NODISCARD;

/*
 * Adds the edits, and adds to *notices (base/words.h) what the user should know. ERROR_LIMIT as
 * above, and if the edits are too large.
 */
bool mcp_servers_edit(const struct mcp_context *context, const struct message *message,
	struct splice *splice, char ***notices, struct error *err) ATTR_NODISCARD;

#endif
