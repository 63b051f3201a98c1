/* SPDX-License-Identifier: MIT */
#include "providers/script_line.h"

#include <string.h>

/* '@' only occurs at its beginning. */
static const char begin_text[] = "@acp-broker:begins-here;";

size_t script_begin_skip(struct script_begin *begin, struct span bytes)
{
	size_t at = 0;
	for (; at < bytes.len && !begin->is_over; at++) {
		char c = bytes.data[at];
		if (c != begin_text[begin->matched]) {
			begin->matched = 0;
		}
		begin->matched += c == begin_text[begin->matched];
		begin->is_over = begin->matched == sizeof(begin_text) - 1;
	}
	return at;
}

bool script_quote_append(struct buf *buf, struct span text, struct error *err)
{
	if (!buf_append(buf, SPAN_LITERAL("'"), err)) {
		return false;
	}
	while (text.len > 0) {
		size_t plain = 0;
		while (plain < text.len && text.data[plain] != '\'' && text.data[plain] != '\n') {
			plain++;
		}
		struct span special = SPAN_LITERAL("");
		if (plain < text.len) {
			special = text.data[plain] == '\n' ? SPAN_LITERAL("'\"$acp_n\"'")
			                                   : SPAN_LITERAL("'\\''");
		}
		if (!buf_append(buf, (struct span){text.data, plain}, err) ||
			!buf_append(buf, special, err)) {
			return false;
		}
		size_t used = plain < text.len ? plain + 1 : plain;
		text.data += used;
		text.len -= used;
	}
	return buf_append(buf, SPAN_LITERAL("'"), err);
}

bool script_take_word(const char *line, const char *word, const char **out_rest)
{
	size_t len = strlen(word);
	bool is_there = strncmp(line, word, len) == 0 && line[len] == ' ';
	*out_rest = is_there ? line + len + 1 : NULL;
	return is_there;
}
