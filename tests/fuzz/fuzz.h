/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * A fuzz target is one function, called by libFuzzer or, in an ordinary build, by replay.c with
 * each file of its corpus. It aborts if the program and the target's simple second implementation
 * disagree.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition) fuzz_check((condition), #condition, __FILE__, __LINE__)

static inline void fuzz_check(bool holds, const char *condition, const char *file, int line)
{
	if (!holds) {
		fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
		abort();
	}
}

/* Numbers that look random and are the same for the same input. */
struct fuzz_random {
	uint64_t state;
};

static inline struct fuzz_random fuzz_random_from(const uint8_t *data, size_t size)
{
	uint64_t hash = UINT64_C(14695981039346656037); // FNV-1a
	for (size_t i = 0; i < size; i++) {
		hash = (hash ^ data[i]) * UINT64_C(1099511628211);
	}
	return (struct fuzz_random){hash | 1};
}

/* 0 <= number < limit */
static inline size_t fuzz_random_below(struct fuzz_random *random, size_t limit)
{
	random->state ^= random->state << 13;
	random->state ^= random->state >> 7;
	random->state ^= random->state << 17;
	return (size_t)(random->state >> 11) % limit;
}

#endif
