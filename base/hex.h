/* SPDX-License-Identifier: MIT */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/span.h"

/* The value of a hexadecimal digit of either case; -1 for anything else. */
static inline int hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9') {
		return digit - '0';
	}
	char lower = (char)(digit | 0x20);
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Writes 2 * size lower-case digits and a NUL. */
static inline void hex_write(char *out, const void *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *from = bytes;
	for (size_t i = 0; i < size; i++) {
		out[2 * i] = digits[from[i] >> 4];
		out[2 * i + 1] = digits[from[i] & 0xf];
	}
	out[2 * size] = '\0';
}

/* Whether the text is this many lower-case digits, as hex_write writes them, and nothing else. */
static inline bool hex_is_written(const char *text, size_t digits)
{
	return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

/* False: these are not 2 * size digits; then `out` may have changed. */
static inline bool hex_read(void *out, size_t size, struct span digits)
{
	unsigned char *to = out;
	for (size_t i = 0; i < size && digits.len == 2 * size; i++) {
		int high = hex_digit(digits.data[2 * i]);
		int low = hex_digit(digits.data[2 * i + 1]);
		if (high < 0 || low < 0) {
			return false;
		}
		to[i] = (unsigned char)(high << 4 | low);
	}
	return digits.len == 2 * size;
}

#endif
