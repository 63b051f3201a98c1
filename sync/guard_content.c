/* SPDX-License-Identifier: MIT */
#include "sync/guard_paths.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/json_names.h"

/* Files of which only a part can make a tool run something. In doubt all of it does. */

static bool has_word(struct span text, const char *word)
{
	return text.len > 0 && memmem(text.data, text.len, word, strlen(word));
}

/* ---- .gitattributes ---- */

static struct span next_line(struct span *rest)
{
	const char *end = rest->len > 0 ? memchr(rest->data, '\n', rest->len) : NULL;
	struct span line = {rest->data, end ? (size_t)(end - rest->data) + 1 : rest->len};
	*rest = (struct span){line.data + line.len, rest->len - line.len};
	return line;
}

/* The next line in which a filter may be named; empty after the last. */
static struct span next_filter(struct span *rest)
{
	while (rest->len > 0) {
		struct span line = next_line(rest);
		if (has_word(line, "filter")) {
			return line;
		}
	}
	return (struct span){NULL, 0};
}

/* Of a file that defines attributes of its own, which other lines name, all lines count. */
static bool defines_filters(struct span text)
{
	return has_word(text, "[attr]") && has_word(text, "filter");
}

static bool attributes_count(struct span old, struct span content)
{
	if (defines_filters(old) || defines_filters(content)) {
		return !span_equals(old, content);
	}
	struct span before, after;
	do {
		before = next_filter(&old);
		after = next_filter(&content);
	} while (before.len > 0 && span_equals(before, after));
	return !span_equals(before, after);
}

/* ---- .claude/settings*.json ---- */

static const char *const claude_members[] = {"hooks", "mcpServers", "apiKeyHelper", "env", NULL};

/* NULL where two readers may read it in two ways. */
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
