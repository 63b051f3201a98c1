/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_POLICY_H
#define BROKER_POLICY_POLICY_H

/*
 * This folder decides what an agent may do: the rules of a profile, what a request is about, the
 * answers that the user wants to have remembered, what each agent's modes allow, and the file that
 * all of it is written to. It knows ACP's words for tools and permissions. It does not know who
 * asks, sends no message and knows no session. broker/gate asks it before a
 * request goes on.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/settings.h"

/* The operations of an agent that policy decides on. */
enum policy_operation {
	POLICY_READ,     // fs/read_text_file
	POLICY_WRITE,    // fs/write_text_file
	POLICY_TERMINAL, // terminal/create
	POLICY_GRANT,    // session/request_permission
	POLICY_OPERATION_COUNT,
};

/* The five decisions; PENDING asks the user. */
enum policy_decision {
	POLICY_PENDING,
	POLICY_ALLOW_ONCE,
	POLICY_ALLOW_ALWAYS,
	POLICY_REJECT_ONCE,
	POLICY_REJECT_ALWAYS,
};

enum policy_mode {
	POLICY_MODE_PASS,          // grants ask; files and terminals inside the roots are allowed
	POLICY_MODE_ASK_ALL,       // writes and terminals ask too
	POLICY_MODE_APPROVE_READS, // reads are allowed, everything else asks
	POLICY_MODE_APPROVE_ALL,
	POLICY_MODE_DENY_ALL,
};

/*
 * What could not be read of a request. It may be anything: a rule that guards is
 * taken to match where it hangs on that, and one that allows is not.
 */
enum policy_unknown {
	POLICY_UNKNOWN_PATHS = 1 << 0, // all of them, or some
	POLICY_UNKNOWN_COMMAND = 1 << 1,
	POLICY_UNKNOWN_KIND = 1 << 2, // of a tool
	POLICY_UNKNOWN_ALL = POLICY_UNKNOWN_PATHS | POLICY_UNKNOWN_COMMAND | POLICY_UNKNOWN_KIND,
};

/*
 * What --approve takes, and the mode that a word of it means: none is deny-all, reads is
 * approve-reads, all is approve-all.
 */
extern const struct setting_key policy_approve_key;
const char *policy_approve_mode(const char *word);

/* What is to be decided; everything borrowed, every list NULL-terminated or NULL. */
struct policy_query {
	enum policy_operation operation;
	const char *const *roots; // the session's, absolute, resolved
	const char *const
		*paths; // READ, WRITE: the one; GRANT: the tool call's; absolute, resolved
	const char *const *command;   // TERMINAL, GRANT: the words
	bool shell_line;              // command is one word that a shell will read
	const char *const *variables; // TERMINAL: names of those that are added for the command
	const char *tool_kind; // GRANT: the tool call's kind ("edit", "execute", …), or NULL
	unsigned unknown;      // of enum policy_unknown
};

/* What was decided, and which line of the policy did it. */
struct policy_verdict {
	enum policy_decision
		decision; // PENDING, ALLOW_ONCE or REJECT_ONCE: a policy remembers nothing
	const char *rule; // "deny = write **\/.git/**", or "mode = pass"; borrowed from the policy
};

struct policy;

/*
 * A policy section: `mode`, then `allow`, `ask` and `deny` rules, each
 * "OPERATION [PATTERN]"; the first deny that matches decides, else the first
 * ask, else the first allow, else the mode. acp-broker.config(5), "RULES", says
 * what matches. Rules err on the side of refusing: an allow rule needs every
 * path to match and a command without shell syntax; a deny or ask rule any path
 * and any place in a shell line. NULL settings is mode = pass without rules.
 * ERROR_CONFIG: "deny: …", less file and section.
 */
struct policy *policy_create(const struct settings *settings, struct error *err) ATTR_NODISCARD;
void policy_destroy(struct policy *policy);

extern const struct setting_key policy_keys[];
extern const size_t policy_key_count;

/* The one decision function, the same on every provider. Pure. */
struct policy_verdict policy_decide(const struct policy *policy, const struct policy_query *query);

/*
 * Whether an agent may work in a mode in which it asks nobody (broker/policy/modes.h):
 * ALLOW_ONCE or REJECT_ONCE, and the line that says so. `agent-modes` decides;
 * without it mode = approve-all consents and every other mode refuses. Where no
 * policy section applies it is the user's affair, as without the broker.
 */
struct policy_verdict policy_decide_agent_modes(const struct policy *policy);

/*
 * A request of the agent's that ACP does not know of: REJECT_ONCE with mode = deny-all, or a "deny
 * =
 * *", and the line that says so; ALLOW_ONCE otherwise: it is between the agent and the editor.
 */
struct policy_verdict policy_decide_unknown(const struct policy *policy);

/* Whether there is a policy section; without one a session is as it would be without the broker. */
bool policy_is_given(const struct policy *policy);

/*
 * Whether a decision hangs on what file a path means: by a rule, by mode = approve-reads, or
 * because the mode asks and the user may have been asked already.
 */
bool policy_looks_at_paths(const struct policy *policy);

/* "mode = pass", then the rules as "deny = write …" in the order of precedence, then "agent-modes =
 * …" where it is set; NULL after the last.
 */
const char *policy_line(const struct policy *policy, size_t index);

const char *policy_operation_name(enum policy_operation operation); // "fs/read_text_file", …
const char *policy_decision_name(enum policy_decision decision);    // "allow-once", …

#endif
