/* SPDX-License-Identifier: MIT */
#include "base/path_quote.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

/* Ranges of characters over ASCII that are not shown: C1 controls, and those of direction. */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{0x80, 0x9f},
	{0x61c, 0x61c},
	{0x200b, 0x200f},
	{0x2028, 0x202e},
	{0x2060, 0x206f},
	{0xfeff, 0xfeff},
};

static uint32_t character_at(const unsigned char *at, size_t length)
{
	static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t character = at[0] & masks[length];
	for (size_t i = 1; i < length; i++) {
		character = character << 6 | (at[i] & 0x3fU);
	}
	return character;
}

static bool is_hidden(uint32_t character)
{
	for (size_t i = 0; i < ARRAY_LENGTH(hidden); i++) {
		if (character >= hidden[i].first && character <= hidden[i].last) {
			return true;
		}
	}
	return character < ' ' || character == 0x7f;
}

/* How many bytes from the beginning may stand as they are; 0: the first may not. */
static size_t plain_length(struct span text)
{
	size_t length = utf8_char_length(text);
	if (length == 0 || *text.data == '"' || *text.data == '\\') {
		return 0;
	}
	return is_hidden(character_at((const unsigned char *)text.data, length)) ? 0 : length;
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

/* Escapes what plain_length refused: one character, or one byte that is none. */
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
	size_t size = strlen(folder) + strlen(path) + 2;
	char *whole = mem_alloc(size);
	snprintf(whole, size, "%s/%s", folder, path);
	char *quoted = path_quote((struct span){whole, size - 1});
	free(whole);
	return quoted;
}
