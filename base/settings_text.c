/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "base/text.h"

enum { PIECE_MAX = 8 };

/* Quotes one character of the value; returns how many bytes of it were used. */
static size_t quote_piece(char piece[PIECE_MAX], const char *at)
{
	static const char named[] = "\n\t\b\"\\";
	static const char letters[] = "ntb\"\\";
	unsigned char byte = (unsigned char)*at;
	const char *found = strchr(named, byte);
	if (found) {
		snprintf(piece, PIECE_MAX, "\\%c", letters[found - named]);
		return 1;
	}
	if (byte < 0x20 || byte == 0x7f) {
		snprintf(piece, PIECE_MAX, "\\x%02x", byte);
		return 1;
	}
	size_t len = 1;
	while (len < 4 && byte >= 0xc0 && ((unsigned char)at[len] & 0xc0) == 0x80) {
		len++;
	}
	memcpy(piece, at, len);
	piece[len] = '\0';
	return len;
}

const char *setting_quote(char *text, size_t size, const char *value)
{
	static const char cut[] = "…\"";
	assert(size > sizeof(cut) + 1);
	size_t used = 0;
	text[used++] = '"';
	while (*value) {
		char piece[PIECE_MAX];
		size_t taken = quote_piece(piece, value);
		size_t len = strlen(piece);
		if (used + len + sizeof(cut) > size) {
			memcpy(text + used, cut, sizeof(cut));
			return text;
		}
		memcpy(text + used, piece, len);
		used += len;
		value += taken;
	}
	text[used++] = '"';
	text[used] = '\0';
	return text;
}

const char *setting_choices_text(char *text, size_t size, const char *const *choices)
{
	bool is_whole = true;
	text[0] = '\0';
	for (size_t i = 0; choices[i] && is_whole; i++) {
		const char *joint = i == 0 ? "" : choices[i + 1] ? ", " : " or ";
		is_whole = text_append(text, size, "%s%s", joint, choices[i]);
	}
	return text;
}
