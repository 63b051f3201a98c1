/* SPDX-License-Identifier: MIT */
#include "base/path_quote.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/real_path.h"
#include "base/utf8.h"

/* How many bytes at the beginning need no escape; 0: the first one does. */
static size_t plain_length(struct span text)
{
	size_t length = utf8_char_length(text);
	if (length == 0 || *text.data == '"' || *text.data == '\\') {
		return 0;
	}
	return utf8_is_hidden(text) ? 0 : length;
}

static size_t escape(char out[5], unsigned char byte)
{
	static const char letters[][2] = {{'\a', 'a'}, {'\b', 'b'}, {'\t', 't'}, {'\n', 'n'},
		{'\v', 'v'}, {'\f', 'f'}, {'\r', 'r'}, {'"', '"'}, {'\\', '\\'}};
	for (size_t i = 0; i < ARRAY_LENGTH(letters); i++) {
		if (byte == (unsigned char)letters[i][0]) {
			return (size_t)snprintf(out, 5, "\\%c", letters[i][1]);
		}
	}
	return (size_t)snprintf(out, 5, "\\%03o", byte);
}

/* Escapes one character, or one invalid byte, that plain_length refused. */
static size_t append_escaped(char *out, struct span *text)
{
	size_t used = 0;
	size_t length = utf8_char_length(*text);
	length = length > 0 ? length : 1;
	for (size_t i = 0; i < length; i++) {
		used += escape(out + used, (unsigned char)text->data[i]);
	}
	*text = (struct span){text->data + length, text->len - length};
	return used;
}

char *path_quote(struct span path)
{
	char *out = mem_alloc(path.len * 4 + 3);
	size_t used = 1;
	bool is_quoted = false;
	out[0] = '"';
	while (path.len > 0) {
		size_t length = plain_length(path);
		if (length == 0) {
			used += append_escaped(out + used, &path);
			is_quoted = true;
			continue;
		}
		memcpy(out + used, path.data, length);
		used += length;
		path = (struct span){path.data + length, path.len - length};
	}
	if (!is_quoted) {
		memmove(out, out + 1, used - 1);
		out[used - 1] = '\0';
		return out;
	}
	memcpy(out + used, "\"", 2);
	return out;
}

char *path_quote_below(const char *folder, const char *path)
{
	char *whole = path_join(folder, path);
	char *quoted = path_quote(span_of(whole));
	free(whole);
	return quoted;
}
