/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_POLICY_RULE_H
#define BROKER_POLICY_POLICY_RULE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "broker/policy/policy.h"
#include "broker/policy/policy_words.h"

/* The effect of a rule, strongest first. */
enum policy_effect { POLICY_DENY, POLICY_ASK, POLICY_ALLOW, POLICY_EFFECT_COUNT };

/* The operation that a rule concerns, or all of them. */
enum { POLICY_ANY_OPERATION = POLICY_OPERATION_COUNT };

struct policy_rule {
	struct list link; // policy's rules
	enum policy_effect effect;
	int operation; // enum policy_operation, or POLICY_ANY_OPERATION
	char *pattern; // a path glob or a tool kind; NULL: none, or the pattern is in words
	struct policy_words words; // of a terminal rule; count 0: none
	char *line;                // "deny = write **\/.git/**"
};

const char *policy_effect_name(enum policy_effect effect);

/* Reads "OPERATION [PATTERN]"; NULL and ERROR_CONFIG on a mistake. */
struct policy_rule *policy_rule_create(
	enum policy_effect effect, const char *value, struct error *err) ATTR_NODISCARD;
void policy_rule_destroy(struct policy_rule *rule);

bool policy_rule_matches(const struct policy_rule *rule, const struct policy_query *query);

/* Whether a variable only changes how a command's output looks, not what the command does. */
bool policy_variable_is_harmless(const char *name);

/*
 * The operation that a query is about. For a permission request this follows from the tool call's
 * kind; POLICY_GRANT if the kind does not tell. For other queries it is the query's own operation.
 */
enum policy_operation policy_subject(const struct policy_query *query);

/*
 * Whether every path lies in one of the roots. False if there is no root or no path, or if a path
 * is unknown.
 */
bool policy_is_inside_roots(const struct policy_query *query);

#endif
