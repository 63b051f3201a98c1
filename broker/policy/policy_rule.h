/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_POLICY_RULE_H
#define BROKER_POLICY_POLICY_RULE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "broker/policy/policy.h"
#include "broker/policy/policy_words.h"

/* What a rule does, strongest first. */
enum policy_effect { POLICY_DENY, POLICY_ASK, POLICY_ALLOW, POLICY_EFFECT_COUNT };

/* The operation a rule is about, or every one. */
enum { POLICY_ANY_OPERATION = POLICY_OPERATION_COUNT };

struct policy_rule {
	struct list link; // policy's rules
	enum policy_effect effect;
	int operation;             // enum policy_operation, or POLICY_ANY_OPERATION
	char *pattern;             // a path glob or a tool kind; NULL: none, or words
	struct policy_words words; // of a terminal rule; count 0: none
	char *line;                // "deny = write **\/.git/**"
};

const char *policy_effect_name(enum policy_effect effect);

/* Reads "OPERATION [PATTERN]"; NULL and ERROR_CONFIG on a mistake. */
struct policy_rule *policy_rule_create(
	enum policy_effect effect, const char *value, struct error *err) ATTR_NODISCARD;
void policy_rule_destroy(struct policy_rule *rule);

bool policy_rule_matches(const struct policy_rule *rule, const struct policy_query *query);

/* A variable that changes how a command's output looks, and nothing that it does. */
bool policy_variable_is_harmless(const char *name);

/*
 * The operation that a tool call is about, by its kind, where permission for it
 * is asked; the query's own otherwise. POLICY_GRANT where the kind tells none.
 */
enum policy_operation policy_subject(const struct policy_query *query);

/* Every path lies in one of the roots; false where no root or no path is known, or not every one.
 */
bool policy_is_inside_roots(const struct policy_query *query);

#endif
