/* SPDX-License-Identifier: MIT */
#include "broker/policy/subject_env.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/markdown.h"
#include "base/path_quote.h"
#include "base/settings.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/words.h"

static const char not_read[] = "variables that cannot be shown";

/* Parses the list; NULL if it cannot be read. */
static struct json_doc *open_list(const struct subject *subject)
{
	struct json_doc *doc = json_doc_parse_unchecked(span_of(subject->env), NULL);
	if (doc && !json_is(doc, 0, JSON_ARRAY)) {
		json_doc_destroy(doc);
		doc = NULL;
	}
	return doc;
}

void subject_set_env(struct subject *subject, struct span env)
{
	if (env.len == 0 || span_is(env, "null")) {
		return;
	}
	subject->env = mem_strndup(env);
	struct json_doc *doc = open_list(subject);
	if (doc && json_count(doc, 0) == 0) {
		free(subject->env);
		subject->env = NULL;
	}
	for (json_node item = doc ? json_first(doc, 0) : JSON_NODE_NONE; item != JSON_NODE_NONE;
		item = json_next(doc, item)) {
		char *name = json_string(doc, json_get(doc, item, "name"));
		words_append(&subject->variables, name ? name : "");
		free(name);
	}
	if (!doc) {
		words_append(&subject->variables, "");
	}
	json_doc_destroy(doc);
}

static struct span cut(const char *text)
{
	size_t len = strlen(text);
	struct span shown = {text, len < SUBJECT_ENV_VALUE_MAX ? len : SUBJECT_ENV_VALUE_MAX};
	shown.len = shown.len < len ? utf8_whole_length(shown) : len;
	return shown;
}

/* Appends one line, even if the value has several. */
static bool append_line(struct buf *out, const char *name, const char *value)
{
	struct buf line;
	buf_init(&line, SIZE_MAX / 2);
	bool is_secret = environment_name_is_secret(name, strlen(name));
	struct span shown = is_secret ? SPAN_LITERAL("***") : cut(value);
	struct span begin = cut(name);
	bool ok = buf_append(&line, begin, NULL) &&
	          buf_append(&line,
			  name[begin.len] ? SPAN_LITERAL(TEXT_CUT "=") : SPAN_LITERAL("="), NULL) &&
	          buf_append(&line, shown, NULL);
	char *quoted = ok ? path_quote(buf_span(&line)) : NULL;
	size_t more = is_secret ? 0 : strlen(value) - shown.len;
	ok = ok && buf_append_format(out, NULL, "\n%s", quoted) &&
	     (more == 0 || buf_append_format(out, NULL, " … and %zu bytes more", more));
	free(quoted);
	buf_finish(&line);
	return ok;
}

static bool append_item(struct buf *out, const struct json_doc *doc, json_node item)
{
	char *name = json_string(doc, json_get(doc, item, "name"));
	char *value = json_string(doc, json_get(doc, item, "value"));
	bool ok = name && value ? append_line(out, name, value)
	                        : buf_append_format(out, NULL, "\n(one that cannot be shown)");
	free(name);
	free(value);
	return ok;
}

bool subject_env_show(const struct subject *subject, struct buf *out)
{
	if (!subject->env) {
		return true;
	}
	struct json_doc *doc = open_list(subject);
	if (!doc) {
		return buf_append_format(out, NULL, "\n\nwith %s", not_read);
	}
	struct buf lines;
	size_t left = json_count(doc, 0);
	if (left == 0) {
		json_doc_destroy(doc);
		return true;
	}
	bool ok = buf_append_format(out, NULL, "\n\nwith\n");
	buf_init(&lines, SIZE_MAX / 2);
	for (json_node item = json_first(doc, 0);
		ok && item != JSON_NODE_NONE && lines.len < SUBJECT_ENV_SHOWN_MAX;
		item = json_next(doc, item)) {
		ok = append_item(&lines, doc, item);
		left--;
	}
	if (ok) {
		struct span text = buf_span(&lines);
		markdown_block(out, (struct span){text.data + 1, text.len - 1});
	}
	ok = ok && (left == 0 || buf_append_format(out, NULL, "\n… and %zu variables more", left));
	buf_finish(&lines);
	json_doc_destroy(doc);
	return ok;
}

static void write_names(struct json_writer *writer, const struct json_doc *doc)
{
	size_t used = 0;
	for (json_node item = json_first(doc, 0);
		item != JSON_NODE_NONE && used < SUBJECT_ENV_SHOWN_MAX;
		item = json_next(doc, item)) {
		char *name = json_string(doc, json_get(doc, item, "name"));
		struct span shown = name ? cut(name) : SPAN_LITERAL("?");
		json_write_string(writer, shown);
		used += shown.len;
		free(name);
	}
}

char *subject_env_names(const struct subject *subject)
{
	if (!subject->env) {
		return NULL;
	}
	struct buf out;
	struct json_writer writer;
	struct json_doc *doc = open_list(subject);
	buf_init(&out, SIZE_MAX / 2);
	json_write_begin(&writer, &out);
	json_write_array(&writer);
	if (doc) {
		write_names(&writer, doc);
	} else {
		json_write_text(&writer, not_read);
	}
	json_write_array_end(&writer);
	bool ok = json_write_end(&writer, NULL);
	char *names = ok ? mem_strndup(buf_span(&out)) : NULL;
	buf_finish(&out);
	json_doc_destroy(doc);
	return names;
}
