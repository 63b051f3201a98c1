/* SPDX-License-Identifier: MIT */
#include "providers/daytona/api_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/utf8.h"

/* A line of text. What does not fit is cut at a character's boundary. */
struct line {
	char *text;
	size_t len;
	size_t max; // without the NUL
	bool is_full;
	bool has_gap; // a blank comes before the next character
};

static void line_add(struct line *line, struct span bytes)
{
	size_t gap = line->has_gap && line->len > 0 ? 1 : 0;
	if (line->is_full || line->len + gap + bytes.len > line->max) {
		line->is_full = true;
		return;
	}
	if (gap) {
		line->text[line->len++] = ' ';
	}
	line->has_gap = false;
	memcpy(line->text + line->len, bytes.data, bytes.len);
	line->len += bytes.len;
}

/* Replaces each run of white space, control bytes and invalid UTF-8 by one blank. */
static void line_add_clean(struct line *line, struct span text, const char *secret)
{
	struct span hidden = secret ? span_of(secret) : (struct span){NULL, 0};
	while (text.len > 0 && !line->is_full) {
		unsigned char byte = (unsigned char)text.data[0];
		size_t taken = utf8_char_length(text);
		bool is_c1 = taken == 2 && byte == 0xc2 && (unsigned char)text.data[1] < 0xa0;
		if (hidden.len > 0 && span_starts_with(text, hidden)) {
			taken = hidden.len;
			line_add(line, SPAN_LITERAL("***"));
		} else if (taken == 0 || byte <= ' ' || byte == 0x7f || is_c1) {
			taken = taken == 0 ? 1 : taken;
			line->has_gap = true;
		} else {
			line_add(line, (struct span){text.data, taken});
		}
		text.data += taken;
		text.len -= taken;
	}
}

static const char *line_end(struct line *line)
{
	static const char dots[] = "…"; // max leaves room for it
	if (line->is_full) {
		memcpy(line->text + line->len, dots, sizeof(dots) - 1);
		line->len += sizeof(dots) - 1;
	}
	line->text[line->len] = '\0';
	return line->text;
}

static struct line line_begin(char *text, size_t max)
{
	return (struct line){.text = text, .max = max - sizeof("…")};
}

static void add_value(
	struct line *line, const struct json_doc *doc, json_node value, const char *secret)
{
	char *text = json_string(doc, value);
	if (text) {
		line_add_clean(line, span_of(text), secret);
		free(text);
		return;
	}
	bool is_list = json_is(doc, value, JSON_ARRAY);
	json_node item = is_list ? json_first(doc, value) : JSON_NODE_NONE;
	for (; item != JSON_NODE_NONE; item = json_next(doc, item)) {
		char *part = json_string(doc, item);
		if (part && line->len > 0) {
			line_add(line, SPAN_LITERAL(","));
			line->has_gap = true;
		}
		line_add_clean(line, span_of(part ? part : ""), secret);
		free(part);
	}
}

const char *daytona_excerpt(struct span body, const char *secret, char text[DAYTONA_MESSAGE_MAX])
{
	struct line line = line_begin(text, DAYTONA_EXCERPT_MAX + sizeof("…"));
	line_add_clean(&line, body, secret);
	return line_end(&line);
}

const char *daytona_read_message(
	struct span body, const char *secret, char text[DAYTONA_MESSAGE_MAX])
{
	struct line line = line_begin(text, DAYTONA_MESSAGE_MAX);
	struct json_doc *doc = json_doc_parse(body, NULL);
	if (doc) {
		add_value(&line, doc, json_get(doc, 0, "message"), secret);
		if (line.len == 0) {
			add_value(&line, doc, json_get(doc, 0, "error"), secret);
		}
		json_doc_destroy(doc);
	}
	return line.len > 0 ? line_end(&line) : daytona_excerpt(body, secret, text);
}

bool daytona_is_own_error(struct span body)
{
	struct json_doc *doc = json_doc_parse(body, NULL);
	char *message = doc ? json_string(doc, json_get(doc, 0, "message")) : NULL;
	bool is_own = message && strncmp(message, "Cannot ", strlen("Cannot ")) != 0;
	json_doc_destroy(doc);
	free(message);
	return is_own;
}
