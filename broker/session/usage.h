/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_USAGE_H
#define BROKER_SESSION_USAGE_H

#include <stdint.h>

#include "base/timestamp.h"
#include "broker/policy/audit.h"

/*
 * Counts the work of a broker since its start, in total and for each session; for _broker/usage
 * (broker/methods/usage_report.h). Loop thread only.
 */

/* An agent's requests, by method. */
enum usage_tool {
	USAGE_READ_FILE,
	USAGE_WRITE_FILE,
	USAGE_TERMINAL_CREATE,
	USAGE_TERMINAL_OUTPUT,
	USAGE_TERMINAL_WAIT,
	USAGE_TERMINAL_KILL,
	USAGE_TERMINAL_RELEASE,
	USAGE_PERMISSION,
	USAGE_ELICITATION,
	USAGE_OTHER,
	USAGE_TOOL_COUNT,
};

const char *usage_tool_name(enum usage_tool tool); // the method's name, or "other"

struct usage_counts {
	uint32_t prompts; // prompts sent to the agent
	uint32_t tool_calls[USAGE_TOOL_COUNT];
	uint32_t decisions[POLICY_REJECT_ALWAYS + 1][AUDIT_BY_NOBODY + 1];
	uint64_t editor_bytes; // bytes of the editor's messages that name the session, as received
	uint64_t agent_bytes;  // bytes of the agent's messages that name it, as received
};

struct usage_syncs {
	uint64_t count, failed;
	uint64_t duration_ms;
	uint64_t sent_bytes, received_bytes;
	uint64_t conflicts;
	uint64_t to_local, to_runtime; // paths added, changed or deleted
};

struct usage {
	char since[TIMESTAMP_SIZE];
	struct usage_counts total;
	struct usage_syncs syncs;
	uint64_t read_bytes, written_bytes; // from and to agents that have ended
};

/* The session that one side has named last. The same name again needs no look-up. */
struct usage_memo {
	char raw[80];
	uint32_t len; // 0: none
	unsigned forgotten;
	struct session *session; // valid while the table's `forgotten` equals this one
};

struct call;
struct error;
struct peer;
struct relay;
struct request;
struct session;
struct sync_result;

/* Called once for each incoming message. */
void usage_note_editor(struct relay *relay, const struct call *call);
void usage_note_agent(struct peer *peer, const struct call *call);

void usage_note_prompt(struct relay *relay, struct session *session); // may be NULL
void usage_note_decision(struct relay *relay, const struct session *session,
	enum policy_decision decision, enum audit_by by); // the session may be NULL

/* A sync has ended with a result or an error. */
void usage_note_sync(
	struct relay *relay, const struct sync_result *result, const struct error *err);

/* The agent is about to be forgotten or restarted. */
void usage_note_gone(struct peer *peer);

#endif
