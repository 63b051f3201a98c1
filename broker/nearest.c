/* SPDX-License-Identifier: MIT */
#include "broker/nearest.h"

#include <string.h>

static size_t min_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The edit distance of insertions, deletions and replacements (Levenshtein). */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t row[NEAREST_WORD_MAX + 1];
	for (size_t j = 0; j <= b_len; j++) {
		row[j] = j;
	}
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			row[j] = min_of(replaced, min_of(row[j], row[j - 1]) + 1);
		}
	}
	return row[b_len];
}

void nearest_init(struct nearest *nearest, const char *word)
{
	*nearest = (struct nearest){.word = word, .mistakes = strlen(word) > 4 ? 3 : 2};
}

void nearest_offer(struct nearest *nearest, const char *candidate)
{
	size_t word_len = strlen(nearest->word);
	size_t len = strlen(candidate);
	if (word_len > NEAREST_WORD_MAX || len > NEAREST_WORD_MAX) {
		return;
	}
	size_t mistakes = distance(nearest->word, word_len, candidate, len);
	if (mistakes < nearest->mistakes) {
		nearest->mistakes = mistakes;
		nearest->best = candidate;
	}
}
