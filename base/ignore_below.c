/* SPDX-License-Identifier: MIT */
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ignore_rules.h"

/* A rule that is followed down the path; `**` splits it into several. */
enum { WRITTEN_MAX = 64, STEPS_MAX = 10000 };

struct lowering {
	const char *below;
	bool is_negated, is_for_folders;
	uint64_t matched; // bit set of the names of `below` that it matches
	struct buf *out;
	int written, steps;
};

static void append(struct lowering *lowering, const char *rule)
{
	if (lowering->written++ < WRITTEN_MAX) {
		(void)!buf_append_format(lowering->out, NULL, "%s/%s%s\n",
			lowering->is_negated ? "!" : "", rule, lowering->is_for_folders ? "/" : "");
	}
}

static bool is_match(const char *pattern, size_t pattern_len, const char *name, size_t len)
{
	char *first = mem_strndup((struct span){pattern, pattern_len});
	char *second = mem_strndup((struct span){name, len});
	bool matches = fnmatch(first, second, 0) == 0;
	free(first);
	free(second);
	return matches;
}

static void mark(struct lowering *lowering, size_t depth)
{
	lowering->matched |= depth < 64 ? UINT64_C(1) << depth : 0;
}

/*
 * `rule` is the rest of the rule after `depth` names of `below` were matched; `at` is the rest of
 * the names.
 */
static void lower(struct lowering *lowering, const char *rule, const char *at, size_t depth)
{
	if (lowering->steps++ > STEPS_MAX) {
		return;
	}
	if (!*rule) {
		mark(lowering, depth - 1); // the rule is about a folder above, or the folder itself
		return;
	}
	if (!*at) {
		append(lowering, rule);
		return;
	}
	size_t len = strcspn(rule, "/");
	size_t name_len = strcspn(at, "/");
	const char *rest = rule + len + (rule[len] == '/');
	const char *next = at + name_len + (at[name_len] == '/');
	if (len == 2 && memcmp(rule, "**", 2) == 0) {
		if (!*rest) {
			mark(lowering, depth);
			return;
		}
		lower(lowering, rest, at, depth);
		lower(lowering, rule, next, depth + 1);
	} else if (is_match(rule, len, at, name_len)) {
		lower(lowering, rest, next, depth + 1);
	}
}

/* A rule without a slash matches a name in any folder. */
static void lower_name(struct lowering *lowering, const char *rule)
{
	size_t depth = 0;
	(void)!buf_append_format(lowering->out, NULL, "%s%s%s\n", lowering->is_negated ? "!" : "",
		rule, lowering->is_for_folders ? "/" : "");
	for (const char *at = lowering->below; *at; depth++) {
		size_t len = strcspn(at, "/");
		if (is_match(rule, strlen(rule), at, len)) {
			mark(lowering, depth);
		}
		at += len + (at[len] == '/');
	}
}

/* Trailing spaces count only after a backslash. */
static size_t trimmed_length(const char *line, size_t len)
{
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\r') &&
		(len < 2 || line[len - 2] != '\\')) {
		len--;
	}
	return len;
}

static void lower_line(struct span line, const char *below, uint64_t *ignored, struct buf *out)
{
	struct lowering lowering = {.below = below, .out = out};
	size_t len = trimmed_length(line.data, line.len);
	const char *begin = line.data;
	if (len == 0 || *begin == '#') {
		return;
	}
	if (*begin == '!') {
		lowering.is_negated = true;
		begin++;
		len--;
	}
	if (len > 0 && begin[len - 1] == '/') {
		lowering.is_for_folders = true;
		len--;
	}
	char *rule = mem_strndup((struct span){begin, len});
	if (!*rule) {
		free(rule);
		return;
	}
	if (strchr(rule, '/')) {
		lower(&lowering, rule + strspn(rule, "/"), below, 0);
	} else {
		lower_name(&lowering, rule);
	}
	free(rule);
	*ignored = lowering.is_negated ? *ignored & ~lowering.matched : *ignored | lowering.matched;
}

void ignore_rules_lower(struct span rules, const char *below, uint64_t *ignored, struct buf *out)
{
	for (size_t at = 0; at < rules.len;) {
		const char *line = rules.data + at;
		const char *end = memchr(line, '\n', rules.len - at);
		size_t len = end ? (size_t)(end - line) : rules.len - at;
		lower_line((struct span){line, len}, below, ignored, out);
		at += len + 1;
	}
}
