/* SPDX-License-Identifier: MIT */
#include "broker/policy/policy_rule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/glob.h"
#include "base/text.h"

enum { QUOTED_MAX = 160, PATH_BYTES_MAX = 4096 };

/* Indexed by operation, including POLICY_ANY_OPERATION. */
static const char *const operation_words[] = {"read", "write", "terminal", "grant", "*", NULL};

/* ACP v1, ToolKind, and the operation that such a tool performs itself. */
static const struct {
	const char *name;
	enum policy_operation subject;
} tool_kinds[] = {
	{"read", POLICY_READ},
	{"search", POLICY_READ},
	{"edit", POLICY_WRITE},
	{"delete", POLICY_WRITE},
	{"move", POLICY_WRITE},
	{"execute", POLICY_TERMINAL},
	{"think", POLICY_GRANT},
	{"fetch", POLICY_GRANT},
	{"switch_mode", POLICY_GRANT},
	{"other", POLICY_GRANT},
};

const char *policy_effect_name(enum policy_effect effect)
{
	static const char *const names[] = {"deny", "ask", "allow"};
	assert((size_t)effect < ARRAY_LENGTH(names));
	return names[effect];
}

enum policy_operation policy_subject(const struct policy_query *query)
{
	for (size_t i = 0; query->operation == POLICY_GRANT && i < ARRAY_LENGTH(tool_kinds); i++) {
		if (query->tool_kind && strcmp(tool_kinds[i].name, query->tool_kind) == 0) {
			return tool_kinds[i].subject;
		}
	}
	return query->operation;
}

/* ---- parsing a rule ---- */

static bool parse_kind(const char *kind, struct error *err)
{
	const char *names[ARRAY_LENGTH(tool_kinds) + 1] = {NULL};
	for (size_t i = 0; i < ARRAY_LENGTH(tool_kinds); i++) {
		names[i] = tool_kinds[i].name;
	}
	const struct setting_key key = {.type = SETTING_CHOICE, .choices = names};
	return setting_check(&key, kind, err) || error_prefix(err, "grant");
}

/* Each operation has its own kind of pattern. */
static bool parse_pattern(struct policy_rule *rule, const char *pattern, struct error *err)
{
	if (!pattern[0]) {
		return true;
	}
	if (rule->operation == POLICY_ANY_OPERATION) {
		return error_set(err, ERROR_CONFIG,
			"expected nothing after *: a pattern needs read, write, terminal or grant");
	}
	if (rule->operation == POLICY_TERMINAL) {
		return policy_words_parse(&rule->words, pattern, err);
	}
	if (!(rule->operation == POLICY_GRANT ? parse_kind(pattern, err)
					      : glob_check_path(pattern, err))) {
		return false;
	}
	rule->pattern = mem_strdup(pattern);
	return true;
}

static bool parse_rule(struct policy_rule *rule, const char *value, struct error *err)
{
	static const char blanks[] = " \t";
	value += strspn(value, blanks);
	size_t len = strcspn(value, blanks);
	int operation = 0;
	while (operation_words[operation] &&
		!span_is((struct span){value, len}, operation_words[operation])) {
		operation++;
	}
	if (!operation_words[operation]) {
		char choices[QUOTED_MAX];
		char quoted[QUOTED_MAX];
		return error_set(err, ERROR_CONFIG, "expected %s, then a pattern, got %s",
			setting_choices_text(choices, sizeof(choices), operation_words),
			setting_quote(quoted, sizeof(quoted), value));
	}
	rule->operation = operation;
	const char *pattern = value + len + strspn(value + len, blanks);
	return parse_pattern(rule, pattern, err);
}

struct policy_rule *policy_rule_create(
	enum policy_effect effect, const char *value, struct error *err)
{
	struct policy_rule *rule = mem_alloc_zero(sizeof(*rule));
	list_init(&rule->link);
	rule->effect = effect;
	if (!parse_rule(rule, value, err)) {
		policy_rule_destroy(rule);
		return NULL;
	}
	size_t size = strlen(value) + sizeof("allow = ");
	rule->line = mem_alloc(size);
	text_whole(rule->line, size, "%s = %s", policy_effect_name(effect), value);
	return rule;
}

void policy_rule_destroy(struct policy_rule *rule)
{
	if (!rule) {
		return;
	}
	list_remove(&rule->link);
	policy_words_finish(&rule->words);
	free(rule->pattern);
	free(rule->line);
	free(rule);
}

/* ---- paths ---- */

/*
 * The part of a path after a root and its slash, "" for the root itself; NULL outside of the root.
 */
static const char *below_root(const char *path, const char *root)
{
	size_t len = strlen(root);
	while (len > 0 && root[len - 1] == '/') {
		len--;
	}
	if (strncmp(path, root, len) != 0 || (path[len] && path[len] != '/')) {
		return NULL;
	}
	return path[len] ? path + len + 1 : path + len;
}

static bool path_matches_in_root(
	const char *pattern, const char *path, const char *root, bool *out_inside)
{
	const char *rest = below_root(path, root);
	*out_inside = *out_inside || rest;
	return rest && glob_match(pattern, rest);
}

/*
 * Matches a resolved path against a glob. A path outside of every root can match only a deny or ask
 * rule.
 */
static bool path_matches(
	const char *pattern, const char *path, const char *const *roots, bool guards)
{
	if (pattern[0] == '/') {
		return glob_match(pattern, path);
	}
	bool inside = false;
	for (size_t i = 0; roots && roots[i]; i++) {
		if (path_matches_in_root(pattern, path, roots[i], &inside)) {
			return true;
		}
	}
	return !inside && guards && glob_match_anywhere(pattern, path);
}

/* Removes empty, . and .. components from a copy; false if there was none. */
static bool normalise(char *path)
{
	size_t used = 0;
	bool changed = path[0] != '/';
	for (const char *at = path; *at;) {
		at += *at == '/';
		size_t len = strcspn(at, "/");
		struct span part = {at, len};
		if (len == 0 || span_is(part, ".") || span_is(part, "..")) {
			while (len == 2 && used > 0 && path[--used] != '/') {
			}
			changed = true;
		} else {
			/* The copy is never longer than the part already read. */
			if (used > 0 || path[0] == '/') {
				path[used++] = '/';
			}
			memmove(path + used, at, len);
			used += len;
		}
		at += len;
	}
	path[used] = '\0';
	return changed;
}

/*
 * No allow rule matches an unresolved path; a deny or ask rule matches what it may mean. For a path
 * that is longer than the kernel takes, no allow rule matches, and every deny or ask rule does.
 */
static bool any_path_matches(
	const char *pattern, const char *path, const char *const *roots, bool guards)
{
	if (strnlen(path, PATH_BYTES_MAX) == PATH_BYTES_MAX) {
		return guards;
	}
	char *copy = mem_strdup(path);
	bool changed = normalise(copy);
	bool matches = (guards || !changed) && path_matches(pattern, copy, roots, guards);
	free(copy);
	return matches;
}

/* One matching path is enough for a deny or ask rule; an allow rule must match all of them. */
static bool paths_match(const struct policy_rule *rule, const struct policy_query *query)
{
	bool guards = rule->effect != POLICY_ALLOW;
	bool all = query->paths && query->paths[0];
	if (query->unknown & POLICY_UNKNOWN_PATHS) {
		return guards;
	}
	for (size_t i = 0; query->paths && query->paths[i]; i++) {
		bool matches =
			any_path_matches(rule->pattern, query->paths[i], query->roots, guards);
		if (matches && guards) {
			return true;
		}
		all = all && matches;
	}
	return all && !guards;
}

bool policy_is_inside_roots(const struct policy_query *query)
{
	bool is_known = query->paths && query->paths[0] && !(query->unknown & POLICY_UNKNOWN_PATHS);
	for (size_t i = 0; is_known && query->paths[i]; i++) {
		if (!any_path_matches("**", query->paths[i], query->roots, false)) {
			return false;
		}
	}
	return is_known;
}

/* ---- matching ---- */

static bool pattern_matches(const struct policy_rule *rule, const struct policy_query *query)
{
	if (rule->words.count > 0 && (query->unknown & POLICY_UNKNOWN_COMMAND)) {
		return rule->effect != POLICY_ALLOW;
	}
	if (rule->words.count > 0) {
		return rule->effect == POLICY_ALLOW
		               ? policy_words_begin(&rule->words, query->command, query->shell_line)
		               : policy_words_may_occur(
					 &rule->words, query->command, query->shell_line);
	}
	return paths_match(rule, query);
}

/* The pattern of a grant rule; no pattern means every kind. */
static bool kind_matches(const struct policy_rule *rule, const struct policy_query *query)
{
	if (!rule->pattern) {
		return true;
	}
	if (query->unknown & POLICY_UNKNOWN_KIND) {
		return rule->effect != POLICY_ALLOW;
	}
	return query->tool_kind && strcmp(rule->pattern, query->tool_kind) == 0;
}

bool policy_variable_is_harmless(const char *name)
{
	static const char *const names[] = {"CI", "CLAUDECODE", "COLORTERM", "COLUMNS",
		"FORCE_COLOR", "LANG", "LINES", "NO_COLOR", "TERM"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (strcmp(name, names[i]) == 0) {
			return true;
		}
	}
	return strncmp(name, "LC_", 3) == 0;
}

bool policy_rule_matches(const struct policy_rule *rule, const struct policy_query *query)
{
	bool has_pattern = rule->pattern || rule->words.count > 0;
	if (rule->operation == POLICY_ANY_OPERATION) {
		return true;
	}
	if (rule->operation == POLICY_GRANT) {
		assert(rule->words.count == 0);
		return query->operation == POLICY_GRANT && kind_matches(rule, query);
	}
	enum policy_operation subject = policy_subject(query);
	if (subject == POLICY_GRANT) {
		/* The tool's kind is unknown: a deny or ask rule goes by paths and words. */
		return rule->effect != POLICY_ALLOW &&
		       (has_pattern ? pattern_matches(rule, query)
				    : (query->unknown & POLICY_UNKNOWN_KIND) != 0);
	}
	return subject == (enum policy_operation)rule->operation &&
	       (!has_pattern || pattern_matches(rule, query));
}
