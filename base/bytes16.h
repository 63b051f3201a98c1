/* SPDX-License-Identifier: MIT */
#ifndef BASE_BYTES16_H
#define BASE_BYTES16_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/*
 * Copies text 16 bytes at a time, or only looks at it, and finds bytes that need more than that.
 * The compiler makes vector instructions of these functions; there is no dispatch, because every
 * x86-64 and arm64 processor has them. Each function copies all 16 bytes and returns how many of
 * them, from the first, are plain: the caller goes on from there and writes over the rest.
 */
enum { BYTES16 = 16 };

typedef signed char bytes16 __attribute__((vector_size(BYTES16)));

/* The index of the first byte that is set in the result of a comparison; BYTES16: none. */
static inline unsigned int bytes16_first(bytes16 found)
{
	uint64_t halves[2];
	memcpy(halves, &found, sizeof(halves));
	if (halves[0] != 0) {
		return (unsigned int)__builtin_ctzll(le64toh(halves[0])) / 8;
	}
	return halves[1] != 0 ? 8 + (unsigned int)__builtin_ctzll(le64toh(halves[1])) / 8 : BYTES16;
}

static inline bytes16 bytes16_each(char byte)
{
	bytes16 each;
	memset(&each, byte, sizeof(each));
	return each;
}

/* Plain bytes are all except `stop`. */
static inline unsigned int bytes16_copy_until(void *to, const void *from, char stop)
{
	bytes16 text;
	memcpy(&text, from, sizeof(text));
	memcpy(to, &text, sizeof(text));
	return bytes16_first(text == bytes16_each(stop));
}

/*
 * Plain bytes are those that a JSON string contains unescaped: ASCII without control characters,
 * quotes and backslashes. Bytes from 0x80 on are negative.
 */
static inline unsigned int bytes16_first_odd(bytes16 text)
{
	return bytes16_first((text < bytes16_each(' ')) | (text == bytes16_each('"')) |
			     (text == bytes16_each('\\')));
}

/* This one only looks. */
static inline unsigned int bytes16_plain(const void *from)
{
	bytes16 text;
	memcpy(&text, from, sizeof(text));
	return bytes16_first_odd(text);
}

static inline unsigned int bytes16_copy_plain(void *to, const void *from)
{
	bytes16 text;
	memcpy(&text, from, sizeof(text));
	memcpy(to, &text, sizeof(text));
	return bytes16_first_odd(text);
}

#endif
