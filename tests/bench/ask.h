/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_ASK_H
#define TESTS_BENCH_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/bench/lines.h"

/* Sends an agent's own requests to its client, one after the other. */
struct asker {
	struct lines *lines; // answers come here; borrowed
	const char *session; // its id; borrowed
	unsigned last_id;
};

/*
 * Sends a request whose params begin with the session's id and end with `params` and `tail`, and
 * waits for its result, which is valid until the next request. Returns NULL, and reports it on
 * stderr, if anything but a result came.
 */
const char *ask(struct asker *asker, const char *method, const char *params, const char *tail,
	size_t *out_len);

/* Whether a result (may be NULL) begins with the wanted bytes; if not, reports it on stderr. */
bool is_result(const char *got, size_t len, const char *wanted, const char *method);

#endif
