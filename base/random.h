/* SPDX-License-Identifier: MIT */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>

/*
 * Random bytes of the kernel's, fit for names that nobody may guess: getrandom(2), and where a
 * system does not have that, /dev/urandom. They do not fail: a program without them could only give
 * two things one name, so it is aborted, as one without memory is.
 */
void random_fill(void *out, size_t size);

/* The same as text: `digits` lower-case hexadecimal digits, an even number, and a NUL. */
void random_fill_hex(char *out, size_t digits);

#endif
