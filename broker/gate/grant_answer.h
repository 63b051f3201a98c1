/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_ANSWER_H
#define BROKER_GATE_GRANT_ANSWER_H

#include "base/json_doc.h"
#include "broker/policy/audit.h"
#include "broker/policy/memory.h"
#include "broker/policy/policy.h"
#include "broker/policy/subject.h"

/* What decided about an agent's request. */
enum grant_source {
	GRANT_BY_RULE,
	GRANT_BY_MODE,     // no rule matched
	GRANT_BY_MEMORY,   // an earlier "always" of the user
	GRANT_BY_QUESTION, // the user has just said yes to the agent's own question
};

struct grant_decision {
	struct policy_verdict verdict; // its rule is static or borrowed from the policy
	enum grant_source source;
};

static inline bool grant_decision_allows(enum policy_decision decision)
{
	return decision == POLICY_ALLOW_ONCE || decision == POLICY_ALLOW_ALWAYS;
}

/*
 * Combines policy and the remembered answers; nothing else does. Policy decides. Where it would
 * ask, an earlier "always" answers. So a deny rule wins over a remembered yes. No side effects;
 * memory and roots may be NULL.
 */
struct grant_decision grant_decide(const struct policy *policy, const struct memory *memory,
	const struct subject *subject, const char *const *roots);

const char *grant_source_name(enum grant_source source); // "rule", "mode", "remembered", "asked"

/* ---- answers to session/request_permission ---- */

enum {
	GRANT_REASON_MAX = 320, // size of the reason for a refusal
	GRANT_OPTION_SIZE = 32, // a longer id counts as none: it is not one of the broker's
};

struct grant_answer {
	enum policy_decision decision;  // POLICY_ALLOW_ONCE to POLICY_REJECT_ALWAYS
	bool is_cancelled;              // the editor's outcome `cancelled`: nobody has chosen
	enum audit_by by;               // PERSON; NOBODY if the answer could not be used
	char reason[GRANT_REASON_MAX];  // for a refusal; read by people
	char option[GRANT_OPTION_SIZE]; // the id of the chosen option; "" if none was
};

/*
 * Reads the result of session/request_permission; the kind of the chosen option decides (ACP,
 * RequestPermissionOutcome). `cancelled`, an option that was not offered, and an invalid outcome
 * count as REJECT_ONCE.
 */
void grant_answer_read(struct grant_answer *answer, struct span result, struct span options);

/* The same for the `error` of an error response. */
void grant_answer_read_error(struct grant_answer *answer, struct span error);

#endif
