/* SPDX-License-Identifier: MIT */
#include "base/json_utf8.h"

#include <string.h>

const struct utf8_lead utf8_leads[128] = {
	[0xc2 - 0x80 ... 0xdf - 0x80] = {2, 0x80, 0xbf},
	[0xe0 - 0x80] = {3, 0xa0, 0xbf},
	[0xe1 - 0x80 ... 0xec - 0x80] = {3, 0x80, 0xbf},
	[0xed - 0x80] = {3, 0x80, 0x9f},
	[0xee - 0x80 ... 0xef - 0x80] = {3, 0x80, 0xbf},
	[0xf0 - 0x80] = {4, 0x90, 0xbf},
	[0xf1 - 0x80 ... 0xf3 - 0x80] = {4, 0x80, 0xbf},
	[0xf4 - 0x80] = {4, 0x80, 0x8f},
};

static char continuation(uint32_t code_point, int shift)
{
	return (char)(0x80 | ((code_point >> shift) & 0x3f));
}

size_t utf8_encode(uint32_t code_point, char out_bytes[UTF8_MAX])
{
	if (code_point < 0x80) {
		out_bytes[0] = (char)code_point;
		return 1;
	}
	if (code_point < 0x800) {
		out_bytes[0] = (char)(0xc0 | (code_point >> 6));
		out_bytes[1] = continuation(code_point, 0);
		return 2;
	}
	if (code_point < 0x10000) {
		out_bytes[0] = (char)(0xe0 | (code_point >> 12));
		out_bytes[1] = continuation(code_point, 6);
		out_bytes[2] = continuation(code_point, 0);
		return 3;
	}
	out_bytes[0] = (char)(0xf0 | (code_point >> 18));
	out_bytes[1] = continuation(code_point, 12);
	out_bytes[2] = continuation(code_point, 6);
	out_bytes[3] = continuation(code_point, 0);
	return 4;
}

enum { ASCII_BLOCK = 64 };

/* The length of the blocks at the beginning that are all ASCII. */
static size_t ascii_blocks(const char *bytes, size_t len)
{
	size_t at = 0;
	for (; len - at >= ASCII_BLOCK; at += ASCII_BLOCK) {
		uint64_t words[ASCII_BLOCK / 8];
		uint64_t any = 0;
		memcpy(words, bytes + at, sizeof(words));
		for (size_t i = 0; i < ASCII_BLOCK / 8; i++) {
			any |= words[i];
		}
		if ((any & UINT64_C(0x8080808080808080)) != 0) {
			break;
		}
	}
	return at;
}

/* Skips ASCII in blocks, and eight bytes at a time behind other characters. */
size_t utf8_valid_length(const char *bytes, size_t len)
{
	size_t at = ascii_blocks(bytes, len);
	while (at < len) {
		uint64_t eight;
		if (len - at >= sizeof(eight)) {
			memcpy(&eight, bytes + at, sizeof(eight));
			if ((eight & UINT64_C(0x8080808080808080)) == 0) {
				at += sizeof(eight);
				continue;
			}
		}
		const unsigned char *next = (const unsigned char *)bytes + at;
		size_t sequence = *next < 0x80 ? 1 : utf8_sequence(next, len - at);
		if (sequence == 0) {
			break;
		}
		at += sequence;
	}
	return at;
}
