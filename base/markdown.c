/* SPDX-License-Identifier: MIT */
#include "base/markdown.h"

#include <assert.h>
#include <stdint.h>

#include "base/utf8.h"

enum { FENCE_MIN = 3 };

static size_t longest_run_of_ticks(struct span text)
{
	size_t longest = 0;
	size_t run = 0;
	for (size_t i = 0; i < text.len; i++) {
		run = text.data[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void append_ticks(struct buf *out, size_t count)
{
	for (; count > 0; count--) {
		buf_add(out, SPAN_LITERAL("`"));
	}
}

/* Appends a character, or an invalid byte, so that a reader sees it. */
static void append_visible(struct buf *out, struct span character, bool is_line)
{
	char byte = *character.data;
	bool ok = true;
	if (utf8_char_length(character) == 0) {
		ok = buf_append_format(out, NULL, "<0x%02X>", (unsigned int)(unsigned char)byte);
	} else if (byte == '\n' || byte == '\t') {
		buf_add(out, !is_line       ? character
			     : byte == '\n' ? SPAN_LITERAL("\\n")
					    : SPAN_LITERAL("\\t"));
	} else if (utf8_is_hidden(character)) {
		ok = buf_append_format(
			out, NULL, "<U+%04X>", (unsigned int)utf8_code_point(character));
	} else {
		buf_add(out, character);
	}
	assert(ok);
}

static void append_all_visible(struct buf *out, struct span text, bool is_line)
{
	while (text.len > 0) {
		size_t length = utf8_char_length(text);
		length = length > 0 ? length : 1;
		append_visible(out, (struct span){text.data, length}, is_line);
		text = (struct span){text.data + length, text.len - length};
	}
}

static bool is_at_an_end(struct span text, char byte)
{
	return text.len > 0 && (text.data[0] == byte || text.data[text.len - 1] == byte);
}

void markdown_code(struct buf *out, struct span text, size_t most)
{
	struct span cut = {text.data, text.len < most ? text.len : most};
	cut.len = cut.len < text.len ? utf8_whole_length(cut) : cut.len;
	size_t ticks = longest_run_of_ticks(cut) + 1;
	/* If both ends have a space, Markdown removes one at each. */
	bool is_padded = cut.len == 0 || is_at_an_end(cut, '`') || is_at_an_end(cut, ' ');
	struct span pad = is_padded ? SPAN_LITERAL(" ") : SPAN_LITERAL("");
	append_ticks(out, ticks);
	buf_add(out, pad);
	append_all_visible(out, cut, true);
	buf_add(out, pad);
	append_ticks(out, ticks);
	if (cut.len < text.len) {
		bool ok = buf_append_format(out, NULL, " … and %zu bytes more", text.len - cut.len);
		assert(ok);
	}
}

void markdown_block(struct buf *out, struct span text)
{
	size_t run = longest_run_of_ticks(text);
	size_t ticks = run < FENCE_MIN ? FENCE_MIN : run + 1;
	append_ticks(out, ticks);
	buf_add(out, SPAN_LITERAL("\n"));
	append_all_visible(out, text, false);
	buf_add(out, SPAN_LITERAL("\n"));
	append_ticks(out, ticks);
}
