/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include "base/attr.h"

/* What a lead byte requires: the length of the sequence, and the range of the second byte. */
struct lead {
	unsigned char first;
	unsigned char last;
	unsigned char length;
	unsigned char second_min;
	unsigned char second_max;
};

static const struct lead leads[] = {
	{0x00, 0x7f, 1, 0x00, 0x00},
	{0xc2, 0xdf, 2, 0x80, 0xbf},
	{0xe0, 0xe0, 3, 0xa0, 0xbf},
	{0xe1, 0xec, 3, 0x80, 0xbf},
	{0xed, 0xed, 3, 0x80, 0x9f},
	{0xee, 0xef, 3, 0x80, 0xbf},
	{0xf0, 0xf0, 4, 0x90, 0xbf},
	{0xf1, 0xf3, 4, 0x80, 0xbf},
	{0xf4, 0xf4, 4, 0x80, 0x8f},
};

static const struct lead *find_lead(unsigned char byte)
{
	for (size_t i = 0; i < ARRAY_LENGTH(leads); i++) {
		if (byte >= leads[i].first && byte <= leads[i].last) {
			return &leads[i];
		}
	}
	return NULL;
}

/* How many bytes fit the lead; lead->length for a complete character. */
static size_t count_fitting(const struct lead *lead, struct span text)
{
	size_t count = 1;
	while (count < lead->length && count < text.len) {
		unsigned char byte = (unsigned char)text.data[count];
		unsigned char min = count == 1 ? lead->second_min : 0x80;
		unsigned char max = count == 1 ? lead->second_max : 0xbf;
		if (byte < min || byte > max) {
			break;
		}
		count++;
	}
	return count;
}

size_t utf8_char_length(struct span text)
{
	if (text.len == 0) {
		return 0;
	}
	const struct lead *lead = find_lead((unsigned char)text.data[0]);
	return lead && count_fitting(lead, text) == lead->length ? lead->length : 0;
}

size_t utf8_whole_length(struct span text)
{
	for (size_t back = 1; back <= 3 && back <= text.len; back++) {
		struct span end = {text.data + text.len - back, back};
		const struct lead *lead = find_lead((unsigned char)end.data[0]);
		if (lead) {
			bool cut = lead->length > back && count_fitting(lead, end) == back;
			return cut ? text.len - back : text.len;
		}
	}
	return text.len;
}

/* ---- invisible characters ---- */

/* Ranges above ASCII (Unicode 15: C1, Cf, Default_Ignorable_Code_Point, spaces of other widths). */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{0x80, 0xa0},
	{0xad, 0xad},
	{0x34f, 0x34f},
	{0x600, 0x605},
	{0x61c, 0x61c},
	{0x6dd, 0x6dd},
	{0x70f, 0x70f},
	{0x890, 0x891},
	{0x8e2, 0x8e2},
	{0x115f, 0x1160},
	{0x1680, 0x1680},
	{0x17b4, 0x17b5},
	{0x180b, 0x180f},
	{0x2000, 0x200f},
	{0x2028, 0x202f},
	{0x205f, 0x206f},
	{0x2800, 0x2800},
	{0x3000, 0x3000},
	{0x3164, 0x3164},
	{0xfe00, 0xfe0f},
	{0xfeff, 0xfeff},
	{0xffa0, 0xffa0},
	{0xfff0, 0xfffb},
	{0x110bd, 0x110bd},
	{0x110cd, 0x110cd},
	{0x13430, 0x1343f},
	{0x1bca0, 0x1bca3},
	{0x1d173, 0x1d17a},
	{0xe0000, 0xe0fff},
};

uint32_t utf8_code_point(struct span text)
{
	static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *at = (const unsigned char *)text.data;
	size_t length = utf8_char_length(text);
	uint32_t character = length > 0 ? at[0] & masks[length] : 0;
	for (size_t i = 1; i < length; i++) {
		character = character << 6 | (at[i] & 0x3fU);
	}
	return character;
}

bool utf8_is_reordering(struct span text)
{
	uint32_t character = utf8_code_point(text);
	return (character >= 0x202a && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069);
}

bool utf8_is_hidden(struct span text)
{
	uint32_t character = utf8_code_point(text);
	for (size_t i = 0; i < ARRAY_LENGTH(hidden); i++) {
		if (character >= hidden[i].first && character <= hidden[i].last) {
			return true;
		}
	}
	return character < ' ' || character == 0x7f;
}
