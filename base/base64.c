/* SPDX-License-Identifier: MIT */
#include "base/base64.h"

#include <stdlib.h>

#include "base/buf.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { NO_DIGIT = 64 };

char *base64_encode(struct span bytes)
{
	char *text = mem_alloc((bytes.len + 2) / 3 * 4 + 1);
	char *to = text;
	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		uint32_t group = (uint32_t)(unsigned char)bytes.data[i] << 16;
		group |= left > 1 ? (uint32_t)(unsigned char)bytes.data[i + 1] << 8 : 0;
		group |= left > 2 ? (uint32_t)(unsigned char)bytes.data[i + 2] : 0;
		*to++ = digits[group >> 18];
		*to++ = digits[group >> 12 & 63];
		*to++ = (char)(left > 1 ? digits[group >> 6 & 63] : '=');
		*to++ = (char)(left > 2 ? digits[group & 63] : '=');
	}
	*to = '\0';
	return text;
}

static uint32_t digit_value(char digit)
{
	if (digit >= 'A' && digit <= 'Z') {
		return (uint32_t)(digit - 'A');
	}
	if (digit >= 'a' && digit <= 'z') {
		return (uint32_t)(digit - 'a' + 26);
	}
	if (digit >= '0' && digit <= '9') {
		return (uint32_t)(digit - '0' + 52);
	}
	return digit == '+' ? 62 : digit == '/' ? 63 : NO_DIGIT;
}

/* Decodes four characters, of which the last `padding` must be '='; false if they are invalid. */
static bool decode_group(const char *text, size_t padding, uint8_t *to)
{
	uint32_t group = 0;
	for (size_t i = 0; i < 4; i++) {
		uint32_t value = i < 4 - padding ? digit_value(text[i]) : 0;
		if (value == NO_DIGIT) {
			return false;
		}
		group = group << 6 | value;
	}
	uint8_t bytes[] = {(uint8_t)(group >> 16), (uint8_t)(group >> 8), (uint8_t)group};
	for (size_t i = 0; i < 3; i++) {
		if (i < 3 - padding) {
			to[i] = bytes[i];
		} else if (bytes[i] != 0) {
			return false;
		}
	}
	return true;
}

bool base64_decode(struct span text, uint8_t **out_bytes, size_t *out_len)
{
	if (text.len % 4 != 0) {
		return false;
	}
	size_t padding = 0;
	while (padding < 2 && padding < text.len && text.data[text.len - 1 - padding] == '=') {
		padding++;
	}
	uint8_t *bytes = mem_alloc(text.len / 4 * 3 + 1);
	for (size_t i = 0; i < text.len; i += 4) {
		bool is_last = i + 4 == text.len;
		if (!decode_group(text.data + i, is_last ? padding : 0, bytes + i / 4 * 3)) {
			free(bytes);
			return false;
		}
	}
	*out_bytes = bytes;
	*out_len = text.len / 4 * 3 - padding;
	return true;
}
