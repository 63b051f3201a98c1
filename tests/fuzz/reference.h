/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_REFERENCE_H
#define TESTS_FUZZ_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_check.h"

/*
 * JSON checked in the plainest way: recursively, with the whole text at hand,
 * known places found by comparing the written paths. It shares no code with
 * base/json_check and is what that is compared to.
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
