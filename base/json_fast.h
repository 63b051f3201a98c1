/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_FAST_H
#define BASE_JSON_FAST_H

#include "base/json_check_impl.h"

/*
 * The inner loops, once for each kind of vector instructions. Two are the checker's: they skip what
 * is complete, valid and common. At anything else they stop, and the steps of json_text.c and
 * json_steps.c continue from there; so only the steps reject bytes. Two copy text into strings and
 * out of them.
 */
struct json_fast {
	const char *name; // "plain", "sse2", "avx2", "neon"

	/*
	 * `at` is inside a string. Returns its closing quote, or `end`, or the first byte that the
	 * steps must look at. Escapes are skipped only with `with_escapes`.
	 */
	const unsigned char *(*text)(
		const unsigned char *at, const unsigned char *end, bool with_escapes);

	/*
	 * Checks tokens inside a container without known members (json_is_unknown) and inside
	 * everything that it contains. Returns the byte at which it stopped and sets the checker's
	 * state for that byte. NULL in the plain table, which has no such loop.
	 */
	const unsigned char *(*unknown)(
		struct json_check *check, const unsigned char *at, const unsigned char *end);

	/*
	 * Writes text as the inside of a string to *to, and moves *to behind it. Returns `end`, or
	 * the first byte that begins no whole, well-formed UTF-8 sequence. There must be room for
	 * JSON_ESCAPED_MAX bytes for each byte of the text, and JSON_FAST_BLOCK more.
	 */
	const unsigned char *(*escape)(
		const unsigned char *at, const unsigned char *end, unsigned char **to);

	/*
	 * Decodes the inside of a checked string to `to`, and returns the end of the output. There
	 * must be room for as many bytes as the string has. The output must not overlap the string.
	 */
	unsigned char *(*decode)(
		const unsigned char *at, const unsigned char *end, unsigned char *to);
};

enum {
	JSON_FAST_BLOCK = 64, // bytes; the loops stop when fewer are left
	JSON_ESCAPED_MAX = 6, // bytes that one byte of text can become
};

extern const struct json_fast json_fast_plain;
#ifdef __x86_64__
extern const struct json_fast json_fast_sse2;
extern const struct json_fast json_fast_avx2; // the processor must have AVX2, BMI1 and POPCNT
#endif
#ifdef __aarch64__
extern const struct json_fast json_fast_neon;
#endif

enum { JSON_FAST_MAX = 3 };

/* The tables that this processor can run; the plain one first, the fastest one last. */
size_t json_fast_list(const struct json_fast *out[JSON_FAST_MAX]);

/* The fastest table that this processor can run. */
const struct json_fast *json_fast_best(void);

#endif
