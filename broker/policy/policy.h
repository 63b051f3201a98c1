/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_POLICY_H
#define BROKER_POLICY_POLICY_H

/*
 * This folder decides what an agent may do. It has the rules of a profile, the subject of a
 * request, the user's remembered answers, what each agent's modes allow, and the audit log. It
 * knows ACP's words for tools and permissions. It does not know who asks, sends no messages, and
 * knows no sessions. broker/gate asks it before a request goes on.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/settings.h"

/* The agent's operations that policy decides about. */
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
 * Parts of a request that could not be read. An unknown part may be anything: a deny or ask rule
 * that depends on it matches, an allow rule does not.
 */
enum policy_unknown {
	POLICY_UNKNOWN_PATHS = 1 << 0, // some or all of them
	POLICY_UNKNOWN_COMMAND = 1 << 1,
	POLICY_UNKNOWN_KIND = 1 << 2, // of a tool
	POLICY_UNKNOWN_ALL = POLICY_UNKNOWN_PATHS | POLICY_UNKNOWN_COMMAND | POLICY_UNKNOWN_KIND,
};

/*
 * The words of --approve and the mode that each means: none is deny-all, reads is approve-reads,
 * all is approve-all.
 */
extern const struct setting_key policy_approve_key;
const char *policy_approve_mode(const char *word);

/* One request to decide about. All pointers are borrowed; each list is NULL-terminated or NULL. */
struct policy_query {
	enum policy_operation operation;
	const char *const *roots;   // the session's, absolute, resolved
	const char *const *paths;   // READ, WRITE: one; GRANT: the tool call's; resolved, absolute
	const char *const *command; // TERMINAL, GRANT: the words
	bool shell_line;            // command is one word that a shell interprets
	const char *const *variables; // TERMINAL: names of the variables added for the command
	const char *tool_kind; // GRANT: the tool call's kind ("edit", "execute", …), or NULL
	unsigned unknown;      // of enum policy_unknown
};

/* The decision, and the line of the policy that made it. */
struct policy_verdict {
	enum policy_decision decision; // PENDING, ALLOW_ONCE or REJECT_ONCE
	const char *rule; // "deny = write **\/.git/**", or "mode = pass"; borrowed from the policy
};

struct policy;

/*
 * A policy section: `mode`, then `allow`, `ask` and `deny` rules, each "OPERATION [PATTERN]". The
 * first matching deny rule decides, else the first ask rule, else the first allow rule, else the
 * mode. acp-broker.config(5), "RULES", says what matches. Rules err on the side of refusing: an
 * allow rule needs every path to match and a command without shell syntax; a deny or ask rule needs
 * any one path, or any place in a shell line. NULL settings mean mode = pass without rules.
 * ERROR_CONFIG: "deny: …", without file and section.
 */
struct policy *policy_create(const struct settings *settings, struct error *err) ATTR_NODISCARD;
void policy_destroy(struct policy *policy);

extern const struct setting_key policy_keys[];
extern const size_t policy_key_count;

/* The only decision function, the same for every provider. No side effects. */
struct policy_verdict policy_decide(const struct policy *policy, const struct policy_query *query);

/*
 * Whether an agent may work in a mode in which it asks nobody (broker/policy/modes.h): ALLOW_ONCE
 * or REJECT_ONCE, and the line that says so. `agent-modes` decides; without it, mode = approve-all
 * allows it and every other mode refuses it. Without a policy section it is the user's choice, as
 * without the broker.
 */
struct policy_verdict policy_decide_agent_modes(const struct policy *policy);

/*
 * Decides about an agent's request that ACP does not know: REJECT_ONCE with mode = deny-all or
 * "deny = *", and the line that says so; else ALLOW_ONCE, because it is between the agent and the
 * editor.
 */
struct policy_verdict policy_decide_unknown(const struct policy *policy);

/* Whether there is a policy section. Without one a session behaves as without the broker. */
bool policy_is_given(const struct policy *policy);

/*
 * Whether a decision depends on the file that a path leads to: by a rule, by mode = approve-reads,
 * or because the mode asks and the user may have been asked already.
 */
bool policy_looks_at_paths(const struct policy *policy);

/*
 * "mode = pass", then the rules as "deny = write …" in the order of precedence, then "agent-modes =
 * …" if it is set; NULL after the last.
 */
const char *policy_line(const struct policy *policy, size_t index);

const char *policy_operation_name(enum policy_operation operation); // "fs/read_text_file", …
const char *policy_decision_name(enum policy_decision decision);    // "allow-once", …

#endif
