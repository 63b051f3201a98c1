/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_HOSTS_H
#define BROKER_GATE_GRANT_HOSTS_H

#include "broker/session/hop.h"

/*
 * Asks the user about connections of a sandbox that no line of the profile allows (`network =
 * ask`), whether the agent, a terminal or an MCP server wants them. All waiting connections to one
 * host and port share one question. The broker cannot tell for which session of an agent a
 * connection is. So an answer holds for the agent, and the question appears in the session that was
 * prompted last. If nobody can be asked, the connection is refused. After a refusal, every
 * connection to that host is refused until the next prompt.
 */
enum {
	GRANT_HOSTS_OPEN_MAX = 3, // questions of an agent at a time
	GRANT_HOSTS_WAITING_MAX =
		32,              // host-port pairs that wait for an answer; one more is refused
	GRANT_HOSTS_AT_ONCE = 8, // questions; then one more each GRANT_HOSTS_EVERY_MS
	GRANT_HOSTS_EVERY_MS = 5000,
	GRANT_HOSTS_ANSWERS_MAX = 256, // of an agent; then the oldest is forgotten
};

/* As in agent_listener; the data is the peer. */
void grant_hosts_on_wish(void *data, const struct sandbox_wish *wish);
void grant_hosts_on_wish_gone(void *data, uint32_t id);
void grant_hosts_on_program(void *data, uint32_t id, const char *program);

/* A prompt goes to the agent: hosts that were refused once may be asked about again. */
void grant_hosts_turn_begins(struct peer *peer, const struct session *session);

/*
 * The session was cancelled or closed: refuses the connections of its open questions, and those
 * that wait for a question.
 */
void grant_hosts_cancel(struct relay *relay, const char *session_id);

/*
 * The agent has ended: refuses its waiting connections and forgets its answers. Its questions stay
 * open.
 */
void grant_hosts_drop(struct peer *peer);

#endif
