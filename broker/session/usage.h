/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_USAGE_H
#define BROKER_SESSION_USAGE_H

#include <stdint.h>

#include "base/timestamp.h"
#include "broker/policy/audit.h"

/*
 * What a broker has done since its start, and for each of its sessions: plain counters, for
 * _broker/usage (broker/methods/usage_report.h). Loop thread only.
 */

/* What an agent asks for, by method. */
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

const char *usage_tool_name(enum usage_tool tool); // the method, or "other"

struct usage_counts {
	uint32_t prompts; // that went to the agent
	uint32_t tool_calls[USAGE_TOOL_COUNT];
	uint32_t decisions[POLICY_REJECT_ALWAYS + 1][AUDIT_BY_NOBODY + 1];
	uint64_t editor_bytes; // of the editor's messages that name the session, as they came
	uint64_t agent_bytes;  // the same, of its agent's
};

struct usage_syncs {
	uint64_t count, failed;
	uint64_t duration_ms;
	uint64_t sent_bytes, received_bytes;
	uint64_t conflicts;
	uint64_t to_local, to_runtime; // paths that were added, changed or deleted
};

struct usage {
	char since[TIMESTAMP_SIZE];
	struct usage_counts total;
	struct usage_syncs syncs;
	uint64_t read_bytes, written_bytes; // from and to agents that are gone
};

/* The session that a side has named last: the same name again is found without looking it up. */
struct usage_memo {
	char raw[80];
	uint32_t len; // 0: none
	unsigned forgotten;
	struct session *session; // as long as the table's `forgotten` is what it was
};

struct call;
struct error;
struct peer;
struct relay;
struct request;
struct session;
struct sync_result;

/* A message has come in, once. */
void usage_note_editor(struct relay *relay, const struct call *call);
void usage_note_agent(struct peer *peer, const struct call *call);

void usage_note_prompt(struct relay *relay, struct session *session); // may be NULL
void usage_note_decision(struct relay *relay, const struct session *session,
	enum policy_decision decision, enum audit_by by); // the same

/* A sync has ended: the result, or the error. */
void usage_note_sync(
	struct relay *relay, const struct sync_result *result, const struct error *err);

/* The agent is about to be forgotten, or to be started anew. */
void usage_note_gone(struct peer *peer);

#endif
