/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_ASK_H
#define TESTS_BENCH_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/bench/lines.h"

/* An agent's own requests to its client, one after the other. */
struct asker {
	struct lines *lines; // answers come here; borrowed
	const char *session; // its id; borrowed
	unsigned last_id;
};

/*
 * Sends a request whose params begin with the session's id and end with
 * `params` and then `tail`, and waits for its result, which lives until the
 * next. NULL where something else came, which is said on stderr.
 */
const char *ask(struct asker *asker, const char *method, const char *params, const char *tail,
	size_t *out_len);

/* Whether a result (may be NULL) begins as it must; where not, that is said. */
bool is_result(const char *got, size_t len, const char *wanted, const char *method);

#endif
