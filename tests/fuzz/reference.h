/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_REFERENCE_H
#define TESTS_FUZZ_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_check.h"

/*
 * Checks JSON in the simplest way: recursively and on the whole text. It finds known places by
 * comparing the paths as written. It shares no code with base/json_check, and the fuzz target
 * compares the two.
 */
struct reference {
	bool ok;
	size_t value_count; // values in the document
	size_t hit_count;   // also those before an error
	struct json_hit *hits;
};

void reference_check(struct reference *reference, const struct json_place *places, size_t count,
	const uint8_t *text, size_t size);
void reference_finish(struct reference *reference);

#endif
