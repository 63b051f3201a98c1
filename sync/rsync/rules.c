/* SPDX-License-Identifier: MIT */
#include "sync/rsync/rules.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void rules_init(struct rules *rules)
{
	*rules = (struct rules){0};
}

void rules_finish(struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++) {
		free(rules->items[i].pattern);
	}
	free(rules->items);
	rules_init(rules);
}

static void push(struct rules *rules, const struct rule *rule)
{
	if (rules->count == rules->capacity) {
		rules->capacity = rules->capacity ? 2 * rules->capacity : 16;
		rules->items = mem_realloc(rules->items, rules->capacity * sizeof(rules->items[0]));
	}
	rules->items[rules->count++] = *rule;
}

void rules_add(struct rules *rules, bool is_include, const char *pattern, bool is_folder_only)
{
	if (strlen(pattern) < PATH_MAX) { // rsync discards longer ones
		push(rules, &(struct rule){mem_strdup(pattern), is_include, is_folder_only});
	}
}

void rules_copy(struct rules *rules, const struct rules *more)
{
	for (size_t i = 0; i < more->count; i++) {
		const struct rule *rule = &more->items[i];
		rules_add(rules, rule->is_include, rule->pattern, rule->is_folder_only);
	}
}

void rules_append(struct rules *rules, struct rules *more)
{
	for (size_t i = 0; i < more->count; i++) {
		push(rules, &more->items[i]);
	}
	more->count = 0;
	rules->has_negation = rules->has_negation || more->has_negation;
}

/* ---- what they match ---- */

static bool is_wild(const char *pattern)
{
	return strpbrk(pattern, "*[?") != NULL;
}

static bool rule_matches(const struct rule *rule, const char *path, bool is_folder)
{
	const char *slash = strrchr(path, '/');
	bool is_rooted = rule->pattern[0] == '/';
	const char *pattern = rule->pattern + is_rooted;
	const char *text = is_rooted || !slash ? path : slash + 1;
	if (rule->is_folder_only && !is_folder) {
		return false;
	}
	return is_wild(pattern) ? rules_glob(pattern, text) : strcmp(pattern, text) == 0;
}

enum rule_verdict rules_match(const struct rules *rules, const char *path, bool is_folder)
{
	for (size_t i = 0; i < rules->count; i++) {
		if (rule_matches(&rules->items[i], path, is_folder)) {
			return rules->items[i].is_include ? RULE_INCLUDE : RULE_EXCLUDE;
		}
	}
	return RULE_NONE;
}

bool rules_exclude(const struct rules *rules, const char *path, bool is_folder)
{
	char folder[PATH_MAX];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t length = (size_t)(slash - path);
		if (length >= sizeof(folder)) {
			return true;
		}
		memcpy(folder, path, length);
		folder[length] = '\0';
		if (rules_match(rules, folder, true) == RULE_EXCLUDE) {
			return true;
		}
	}
	return rules_match(rules, path, is_folder) == RULE_EXCLUDE;
}

bool rules_write(const struct rules *rules, struct buf *out, struct error *err)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->items[i];
		if (!buf_append_format(out, err, "%c %s%s%c", rule->is_include ? '+' : '-',
			    rule->pattern, rule->is_folder_only ? "/" : "", 0)) {
			return false;
		}
	}
	return true;
}
