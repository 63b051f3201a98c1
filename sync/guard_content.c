/* SPDX-License-Identifier: MIT */
#include "sync/guard_paths.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/json_names.h"

/* In some guarded files only parts can make a tool run something. If in doubt, all of it counts. */

/* ---- .gitattributes ---- */

static struct span next_line(struct span *rest)
{
	const char *end = rest->len > 0 ? memchr(rest->data, '\n', rest->len) : NULL;
	struct span line = {rest->data, end ? (size_t)(end - rest->data) + 1 : rest->len};
	*rest = (struct span){line.data + line.len, rest->len - line.len};
	return line;
}

/*
 * The attributes with which git runs only what the user has set up for them (git's
 * gitattributes(5), and linguist's). Any other one may be a filter, or a macro for one, defined in
 * any .gitattributes or in the user's git.
 */
static const char *const harmless[] = {"text", "crlf", "eol", "binary", "diff", "merge",
	"whitespace", "ident", "working-tree-encoding", "encoding", "conflict-marker-size", "delta",
	"export-ignore", "export-subst", NULL};

/* `attribute`, `-attribute`, `!attribute` or `attribute=value` */
static bool is_harmless(struct span word)
{
	if (*word.data == '-' || *word.data == '!') {
		word = (struct span){word.data + 1, word.len - 1};
	}
	const char *value = word.len > 0 ? memchr(word.data, '=', word.len) : NULL;
	word.len = value ? (size_t)(value - word.data) : word.len;
	for (const char *const *name = harmless; *name; name++) {
		if (span_is(word, *name)) {
			return true;
		}
	}
	return span_starts_with(word, SPAN_LITERAL("linguist-"));
}

/* A quoted pattern may have spaces: its parts after a space are taken for attributes. */
static bool line_counts(struct span line)
{
	static const char blanks[] = " \t\r\n";
	struct span pattern = span_take_word(&line, blanks);
	if (span_starts_with(pattern, SPAN_LITERAL("#"))) {
		return false;
	}
	if (span_starts_with(pattern, SPAN_LITERAL("[attr]"))) {
		return true;
	}
	for (struct span word = span_take_word(&line, blanks); word.len > 0;
		word = span_take_word(&line, blanks)) {
		if (!is_harmless(word)) {
			return true;
		}
	}
	return false;
}

/* The next line that may name a filter; empty after the last. */
static struct span next_counting(struct span *rest)
{
	while (rest->len > 0) {
		struct span line = next_line(rest);
		if (line_counts(line)) {
			return line;
		}
	}
	return (struct span){NULL, 0};
}

static bool attributes_count(struct span old, struct span content)
{
	struct span before, after;
	do {
		before = next_counting(&old);
		after = next_counting(&content);
	} while (before.len > 0 && span_equals(before, after));
	return !span_equals(before, after);
}

/* ---- .claude/settings*.json ---- */

static const char *const claude_members[] = {"hooks", "mcpServers", "apiKeyHelper", "env", NULL};

/* NULL if two readers could read it differently. */
static struct json_doc *read_object(struct span text)
{
	struct error err;
	const struct json_name_rules rules = {.known = claude_members, .is_flat = true};
	struct json_doc *doc = json_doc_parse(text, &err);
	if (doc && (!json_is(doc, 0, JSON_OBJECT) || !json_names_check(text, &rules, &err))) {
		json_doc_destroy(doc);
		return NULL;
	}
	return doc;
}

static bool members_differ(const struct json_doc *old, const struct json_doc *content)
{
	for (const char *const *name = claude_members; *name; name++) {
		json_node before = json_get(old, 0, *name);
		json_node after = json_get(content, 0, *name);
		bool has_before = before != JSON_NODE_NONE;
		bool has_after = after != JSON_NODE_NONE;
		if (has_before != has_after || (has_before && !span_equals(json_raw(old, before),
								      json_raw(content, after)))) {
			return true;
		}
	}
	return false;
}

static bool settings_count(struct span old, struct span content)
{
	struct json_doc *before = read_object(old.len > 0 ? old : SPAN_LITERAL("{}"));
	struct json_doc *after = read_object(content);
	bool counts = !before || !after || members_differ(before, after);
	json_doc_destroy(before);
	json_doc_destroy(after);
	return counts;
}

/* ---- all ---- */

static bool has_prefix(const char *text, const char *prefix)
{
	return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_claude_settings(const char *path, const char *name)
{
	static const char folder[] = ".claude/";
	size_t before = (size_t)(name - path);
	size_t len = strlen(name);
	return before >= strlen(folder) && has_prefix(name - strlen(folder), folder) &&
	       (before == strlen(folder) || name[-(long)strlen(folder) - 1] == '/') &&
	       has_prefix(name, "settings") && len >= 5 && strcasecmp(name + len - 5, ".json") == 0;
}

bool guard_content_counts(const char *path, struct span old, struct span content)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	if (strcasecmp(name, ".gitattributes") == 0) {
		return attributes_count(old, content);
	}
	return !is_claude_settings(path, name) || settings_count(old, content);
}
