/* SPDX-License-Identifier: MIT */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>

/*
 * Random bytes from the kernel, good enough for names that nobody may guess: getrandom(2), or
 * /dev/urandom on systems without it. On failure the program aborts, as it does without memory:
 * otherwise it could give two things the same name.
 */
void random_fill(void *out, size_t size);

/* The same as text: `digits` lower-case hexadecimal digits, an even number, and a NUL. */
void random_fill_hex(char *out, size_t digits);

#endif
