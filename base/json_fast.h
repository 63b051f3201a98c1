/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_FAST_H
#define BASE_JSON_FAST_H

#include "base/json_check_impl.h"

/*
 * The two inner loops of the checker, once for each kind of vector instructions. They only ever
 * accept: at anything that is cut, wrong or rare they stop, and the steps of json_text.c and
 * json_steps.c, which are the reference, go on from there.
 */
struct json_fast {
	const char *name; // "plain", "sse2", "avx2", "neon"

	/*
	 * Skips the text of a string: up to its closing quote, to the end, or to the first byte
	 * that needs a look. Escapes are skipped only with `with_escapes`.
	 */
	const unsigned char *(*text)(
		const unsigned char *at, const unsigned char *end, bool with_escapes);

	/*
	 * Runs the grammar inside a container without known members (json_is_unknown), until it
	 * closes. Returns where it stopped, with the state of the checker set for the byte there.
	 * NULL: the plain instructions have no such loop.
	 */
	const unsigned char *(*unknown)(
		struct json_check *check, const unsigned char *at, const unsigned char *end);
};

enum { JSON_FAST_BLOCK = 64 }; // bytes that the loops look at together; they stop before fewer

extern const struct json_fast json_fast_plain;
#ifdef __x86_64__
extern const struct json_fast json_fast_sse2;
extern const struct json_fast json_fast_avx2; // only where the processor has AVX2 and BMI1
#endif
#ifdef __aarch64__
extern const struct json_fast json_fast_neon;
#endif

enum { JSON_FAST_MAX = 3 };

/* Those that this processor can run; the plain one first, the best one last. */
size_t json_fast_list(const struct json_fast *out[JSON_FAST_MAX]);

/* The best one. */
const struct json_fast *json_fast_best(void);

#endif
