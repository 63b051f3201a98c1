/* SPDX-License-Identifier: MIT */
#include "broker/chat/diff.h"

#include <string.h>

/* The length of the first line, with its line end. */
static size_t line_length(struct span text)
{
	const char *end = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;
	return end ? (size_t)(end - text.data) + 1 : text.len;
}

struct span diff_take_line(struct span *text)
{
	size_t len = line_length(*text);
	struct span line = {text->data, len};
	*text = (struct span){text->data + len, text->len - len};
	if (len > 0 && line.data[len - 1] == '\n') {
		line.len--;
	}
	return line;
}

/* The offset of the last line. */
static size_t last_line(struct span text)
{
	size_t at = text.len > 0 ? text.len - 1 : 0; // without its own line end
	while (at > 0 && text.data[at - 1] != '\n') {
		at--;
	}
	return at;
}

static void drop_common_end(struct span *one, struct span *other)
{
	while (one->len > 0 && other->len > 0) {
		size_t one_at = last_line(*one);
		size_t other_at = last_line(*other);
		size_t len = one->len - one_at;
		if (len != other->len - other_at ||
			memcmp(one->data + one_at, other->data + other_at, len) != 0) {
			return;
		}
		one->len = one_at;
		other->len = other_at;
	}
}

void diff_find(struct span old_text, struct span new_text, struct diff_lines *out_lines)
{
	struct diff_lines lines = {.removed = old_text, .added = new_text};
	for (;;) {
		size_t len = line_length(lines.removed);
		if (len == 0 || len != line_length(lines.added) ||
			memcmp(lines.removed.data, lines.added.data, len) != 0) {
			break;
		}
		diff_take_line(&lines.removed);
		diff_take_line(&lines.added);
	}
	drop_common_end(&lines.removed, &lines.added);
	*out_lines = lines;
}
