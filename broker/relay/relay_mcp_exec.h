/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_MCP_EXEC_H
#define BROKER_RELAY_RELAY_MCP_EXEC_H

#include "broker/config/mcp_config.h"
#include "broker/session/hop.h"

/*
 * mcp-exec = yes: an MCP server of the broker's own, with which an agent runs commands in its
 * sandbox (broker/agent/mcp_door.h, mcp_tools.h). Each call goes through the gate as if the agent
 * had asked for a terminal: the same policy, question and audit line. Then the command runs as a
 * program's own does (broker/methods/run.h).
 */

/*
 * Why no session of the profile gets such a server; NULL: nothing in the profile excludes it.
 * `agent_name` is what the agent calls itself; "": not known yet.
 */
const char *relay_mcp_exec_excludes(const struct profile *profile, const char *agent_name);

void relay_mcp_exec_init(struct relay *relay);

/* The relay ends, or is destroyed: drops every call and connection at once. */
void relay_mcp_exec_end(struct relay *relay);

/*
 * Makes the server of the session that the request opens; the caller finishes the entry. False if
 * none is offered; if the profile wants one, *notices (base/words.h) gets the reason.
 */
bool relay_mcp_exec_offer(
	struct peer *peer, struct request *request, struct mcp_server *out_entry, char ***notices);

/* The answer to that request: reads the session's mode from it; the server takes calls then. */
void relay_mcp_exec_read(struct request *request, const struct call *answer);
void relay_mcp_exec_opened(struct relay *relay, const struct request *request);

/* An update was passed to the editor: it may have the session's mode. */
void relay_mcp_exec_on_update(struct peer *peer, const struct call *call);

/* The turn was cancelled: ends the session's calls; they are answered. */
void relay_mcp_exec_cancel(struct relay *relay, const char *session_id);

/* The session, or every session of the agent (NULL: any) has ended: closes its connections. */
void relay_mcp_exec_close(struct relay *relay, const struct peer *peer, const char *session_id);

/* The row of a call at the gate, in place of the agent's own request (session/method.h). */
void relay_mcp_exec_serve(struct peer *peer, const struct call *call);
void relay_mcp_exec_fail(struct peer *peer, struct span id, const struct error *failure);

#endif
