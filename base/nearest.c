/* SPDX-License-Identifier: MIT */
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

static size_t min_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool is_swapped(const char *a, size_t i, const char *b, size_t j)
{
	return i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
}

/*
 * The edit distance with insertions, deletions, replacements and swaps of neighbours; no letter
 * takes part in two swaps ("optimal string alignment").
 */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][NEAREST_WORD_MAX + 1]; // indexed by i % 3
	for (size_t j = 0; j <= b_len; j++) {
		rows[0][j] = j;
	}
	for (size_t i = 1; i <= a_len; i++) {
		size_t *row = rows[i % 3];
		const size_t *before = rows[(i + 2) % 3];
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t replaced = before[j - 1] + (a[i - 1] != b[j - 1]);
			row[j] = min_of(replaced, min_of(before[j], row[j - 1]) + 1);
			if (is_swapped(a, i, b, j)) {
				row[j] = min_of(row[j], rows[(i + 1) % 3][j - 2] + 1);
			}
		}
	}
	return rows[a_len % 3][b_len];
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
