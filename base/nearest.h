/* SPDX-License-Identifier: MIT */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

enum { NEAREST_WORD_MAX = 32 }; // longer words are never near

/*
 * "Did you mean …?": finds the candidate with the fewest typing mistakes in a word. Up to two
 * mistakes count as near, or one in words of up to four letters. Two swapped neighbours are one
 * mistake.
 */
struct nearest {
	const char *word;
	const char *best; // borrowed; NULL while none is near
	size_t mistakes;  // of best
};

void nearest_init(struct nearest *nearest, const char *word);
void nearest_offer(struct nearest *nearest, const char *candidate);

#endif
