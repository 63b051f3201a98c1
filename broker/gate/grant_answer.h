/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_ANSWER_H
#define BROKER_GATE_GRANT_ANSWER_H

#include "base/json_doc.h"
#include "broker/policy/audit.h"
#include "broker/policy/memory.h"
#include "broker/policy/policy.h"
#include "broker/policy/subject.h"

/* What decided on something an agent asked for. */
enum grant_source {
	GRANT_BY_RULE,
	GRANT_BY_MODE,     // no rule matched
	GRANT_BY_MEMORY,   // the user has said "always" before
	GRANT_BY_QUESTION, // the user has just said yes to the agent's own question
};

struct grant_decision {
	struct policy_verdict verdict; // its rule borrowed from the policy, or static
	enum grant_source source;
};

static inline bool grant_decision_allows(enum policy_decision decision)
{
	return decision == POLICY_ALLOW_ONCE || decision == POLICY_ALLOW_ALWAYS;
}

/*
 * The one place where policy and what the user has said "always" to meet:
 * policy decides, and where it would ask, an earlier "always" answers. So a deny
 * rule wins over a remembered yes. Pure; memory and roots may be NULL.
 */
struct grant_decision grant_decide(const struct policy *policy, const struct memory *memory,
	const struct subject *subject, const char *const *roots);

const char *grant_source_name(enum grant_source source); // "rule", "mode", "remembered", "asked"

/* ---- answers to session/request_permission ---- */

enum { GRANT_REASON_MAX = 320 }; // bytes of why an answer is a no

struct grant_answer {
	enum policy_decision decision; // ALLOW_ONCE … REJECT_ALWAYS
	bool is_cancelled;             // the editor's outcome: nobody has chosen
	enum audit_by by;              // PERSON, or NOBODY where the answer could not be used
	char reason[GRANT_REASON_MAX]; // of a no, for people
};

/*
 * What the result of session/request_permission says, by the kind of the option
 * it names (ACP, RequestPermissionOutcome). `cancelled`, an option that was not
 * offered and what is no outcome at all are REJECT_ONCE.
 */
void grant_answer_read(struct grant_answer *answer, struct span result, struct span options);

/* The same of an error response's `error`. */
void grant_answer_read_error(struct grant_answer *answer, struct span error);

#endif
