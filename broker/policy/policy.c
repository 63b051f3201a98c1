/* SPDX-License-Identifier: MIT */
#include "broker/policy/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/words.h"
#include "broker/policy/policy_rule.h"

enum agent_modes { AGENT_MODES_UNSET, AGENT_MODES_ALLOW, AGENT_MODES_DENY };

struct policy {
	enum policy_mode mode;
	enum agent_modes agent_modes;
	bool has_section;
	char **variables;  // names from allow-variable
	struct list rules; // of struct policy_rule, the strongest effect first
};

/* In the order of enum policy_mode. */
static const char *const mode_words[] = {
	"pass", "ask-all", "approve-reads", "approve-all", "deny-all", NULL};
static const char *const mode_lines[] = {"mode = pass", "mode = ask-all", "mode = approve-reads",
	"mode = approve-all", "mode = deny-all"};

static const char *const agent_modes_words[] = {"allow", "deny", NULL};
static const char *const agent_modes_lines[] = {
	[AGENT_MODES_ALLOW] = "agent-modes = allow",
	[AGENT_MODES_DENY] = "agent-modes = deny",
};

const struct setting_key policy_keys[] = {
	{.name = "mode",
		.type = SETTING_CHOICE,
		.choices = mode_words,
		.fallback = "pass",
		.help = "what happens if no rule matches"},
	{.name = "allow", .type = SETTING_LIST, .help = "OPERATION [PATTERN] to allow"},
	{.name = "ask", .type = SETTING_LIST, .help = "OPERATION [PATTERN] to ask the user about"},
	{.name = "deny", .type = SETTING_LIST, .help = "OPERATION [PATTERN] to refuse"},
	{.name = "allow-variable",
		.type = SETTING_LIST,
		.help = "the NAME of a variable that may be added to a command that a rule "
			"allows"},
	{.name = "agent-modes",
		.type = SETTING_CHOICE,
		.choices = agent_modes_words,
		.help = "whether the agent may work in a mode that asks nobody"},
};
const size_t policy_key_count = ARRAY_LENGTH(policy_keys);

static const char *const approve_words[] = {"none", "reads", "all", NULL};
static const char *const approve_modes[] = {"deny-all", "approve-reads", "approve-all"};

const struct setting_key policy_approve_key = {
	.name = "approve",
	.type = SETTING_CHOICE,
	.choices = approve_words,
	.help = "what is allowed if no rule decides",
};

const char *policy_approve_mode(const char *word)
{
	size_t i = 0;
	while (strcmp(approve_words[i], word) != 0) {
		i++;
		assert(approve_words[i]); // the option was checked
	}
	return approve_modes[i];
}

static const enum policy_decision effect_decisions[] = {
	[POLICY_DENY] = POLICY_REJECT_ONCE,
	[POLICY_ASK] = POLICY_PENDING,
	[POLICY_ALLOW] = POLICY_ALLOW_ONCE,
};

/* The decisions without a matching rule: for each mode those for read, write, terminal, grant. */
static const enum policy_decision mode_decisions[][POLICY_OPERATION_COUNT] = {
	[POLICY_MODE_PASS] = {POLICY_ALLOW_ONCE, POLICY_ALLOW_ONCE, POLICY_ALLOW_ONCE,
		POLICY_PENDING},
	[POLICY_MODE_ASK_ALL] = {POLICY_ALLOW_ONCE, POLICY_PENDING, POLICY_PENDING, POLICY_PENDING},
	[POLICY_MODE_APPROVE_READS] = {POLICY_ALLOW_ONCE, POLICY_PENDING, POLICY_PENDING,
		POLICY_PENDING},
	[POLICY_MODE_APPROVE_ALL] = {POLICY_ALLOW_ONCE, POLICY_ALLOW_ONCE, POLICY_ALLOW_ONCE,
		POLICY_ALLOW_ONCE},
	[POLICY_MODE_DENY_ALL] = {POLICY_REJECT_ONCE, POLICY_REJECT_ONCE, POLICY_REJECT_ONCE,
		POLICY_REJECT_ONCE},
};

static enum policy_mode parse_mode(const struct settings *settings)
{
	const char *word = settings_get(settings, "mode");
	int mode = 0;
	while (word && mode_words[mode] && strcmp(mode_words[mode], word) != 0) {
		mode++;
	}
	assert(mode_words[mode]); // the settings were checked
	return mode;
}

static enum agent_modes parse_agent_modes(const struct settings *settings)
{
	const char *word = settings_get(settings, "agent-modes");
	if (!word) {
		return AGENT_MODES_UNSET;
	}
	return strcmp(word, "allow") == 0 ? AGENT_MODES_ALLOW : AGENT_MODES_DENY;
}

static bool add_rules(struct policy *policy, const struct settings *settings,
	enum policy_effect effect, struct error *err)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, policy_effect_name(effect)) != 0) {
			continue;
		}
		struct policy_rule *rule = policy_rule_create(effect, setting->value, err);
		if (!rule) {
			return error_prefix(err, "%s", setting->key);
		}
		list_append(&policy->rules, &rule->link);
	}
	return true;
}

struct policy *policy_create(const struct settings *settings, struct error *err)
{
	struct policy *policy = mem_alloc_zero(sizeof(*policy));
	list_init(&policy->rules);
	if (!settings) {
		return policy;
	}
	policy->has_section = true;
	policy->mode = parse_mode(settings);
	policy->agent_modes = parse_agent_modes(settings);
	words_append_settings(&policy->variables, settings, "allow-variable");
	for (int effect = 0; effect < POLICY_EFFECT_COUNT; effect++) {
		if (!add_rules(policy, settings, effect, err)) {
			policy_destroy(policy);
			return NULL;
		}
	}
	return policy;
}

void policy_destroy(struct policy *policy)
{
	if (!policy) {
		return;
	}
	LIST_FOR_EACH(rule, &policy->rules, struct policy_rule, link) {
		policy_rule_destroy(rule);
	}
	words_free(policy->variables);
	free(policy);
}

/*
 * Whether a command adds a variable that is neither harmless nor in `allow-variable`: one like
 * LD_PRELOAD can turn any command into another.
 */
static bool adds_variables(const struct policy *policy, const struct policy_query *query)
{
	for (const char *const *name = query->variables; name && *name; name++) {
		char **allowed = policy->variables;
		while (allowed && *allowed && strcmp(*allowed, *name) != 0) {
			allowed++;
		}
		if (!(allowed && *allowed) && !policy_variable_is_harmless(*name)) {
			return true;
		}
	}
	return false;
}

static enum policy_decision decide_by_mode(
	const struct policy *policy, const struct policy_query *query)
{
	bool is_read = policy->mode == POLICY_MODE_APPROVE_READS &&
	               policy_subject(query) == POLICY_READ && policy_is_inside_roots(query);
	return is_read ? POLICY_ALLOW_ONCE : mode_decisions[policy->mode][query->operation];
}

struct policy_verdict policy_decide(const struct policy *policy, const struct policy_query *query)
{
	assert((size_t)query->operation < POLICY_OPERATION_COUNT);
	bool is_altered = adds_variables(policy, query);
	LIST_FOR_EACH(rule, &policy->rules, struct policy_rule, link) {
		bool says_words = rule->effect == POLICY_ALLOW && rule->words.count > 0;
		if (!(says_words && is_altered) && policy_rule_matches(rule, query)) {
			return (struct policy_verdict){effect_decisions[rule->effect], rule->line};
		}
	}
	return (struct policy_verdict){decide_by_mode(policy, query), mode_lines[policy->mode]};
}

struct policy_verdict policy_decide_agent_modes(const struct policy *policy)
{
	if (policy->agent_modes != AGENT_MODES_UNSET) {
		bool allows = policy->agent_modes == AGENT_MODES_ALLOW;
		return (struct policy_verdict){allows ? POLICY_ALLOW_ONCE : POLICY_REJECT_ONCE,
			agent_modes_lines[policy->agent_modes]};
	}
	bool allows = !policy->has_section || policy->mode == POLICY_MODE_APPROVE_ALL;
	return (struct policy_verdict){
		allows ? POLICY_ALLOW_ONCE : POLICY_REJECT_ONCE, mode_lines[policy->mode]};
}

struct policy_verdict policy_decide_unknown(const struct policy *policy)
{
	LIST_FOR_EACH(rule, &policy->rules, struct policy_rule, link) {
		if (rule->effect == POLICY_DENY && rule->operation == POLICY_ANY_OPERATION) {
			return (struct policy_verdict){POLICY_REJECT_ONCE, rule->line};
		}
	}
	bool denies = policy->mode == POLICY_MODE_DENY_ALL;
	return (struct policy_verdict){
		denies ? POLICY_REJECT_ONCE : POLICY_ALLOW_ONCE, mode_lines[policy->mode]};
}

bool policy_is_given(const struct policy *policy)
{
	return policy->has_section;
}

bool policy_looks_at_paths(const struct policy *policy)
{
	if (policy->mode == POLICY_MODE_APPROVE_READS || policy->mode == POLICY_MODE_ASK_ALL) {
		return true;
	}
	LIST_FOR_EACH(rule, &policy->rules, struct policy_rule, link) {
		if (rule->pattern && rule->operation != POLICY_GRANT) {
			return true;
		}
	}
	return false;
}

const char *policy_line(const struct policy *policy, size_t index)
{
	if (index == 0) {
		return mode_lines[policy->mode];
	}
	LIST_FOR_EACH(rule, &policy->rules, struct policy_rule, link) {
		if (--index == 0) {
			return rule->line;
		}
	}
	bool is_last = policy->agent_modes != AGENT_MODES_UNSET && --index == 0;
	return is_last ? agent_modes_lines[policy->agent_modes] : NULL;
}

const char *policy_operation_name(enum policy_operation operation)
{
	static const char *const names[] = {"fs/read_text_file", "fs/write_text_file",
		"terminal/create", "session/request_permission"};
	assert((size_t)operation < ARRAY_LENGTH(names));
	return names[operation];
}

const char *policy_decision_name(enum policy_decision decision)
{
	static const char *const names[] = {
		"pending", "allow-once", "allow-always", "reject-once", "reject-always"};
	assert((size_t)decision < ARRAY_LENGTH(names));
	return names[decision];
}
