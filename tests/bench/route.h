/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_ROUTE_H
#define TESTS_BENCH_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/bench/lines.h"

/*
 * The other end of a benchmark: a command, which is the agent itself or a relay that starts it, and
 * the two pipes to it. A call that fails reports the reason on stderr.
 */
struct route {
	pid_t pid;
	int in;             // its stdin, to write to
	int out;            // its stdout, to read from
	struct lines lines; // over out, for what is read line by line
	unsigned last_id;
	uint64_t started_ns;
	char session[64];
};

bool route_start(struct route *route, char **argv);

/* `initialize` and its answer. */
bool route_initialize(struct route *route);

/* `session/new`; the session's id is kept in the route. */
bool route_open_session(struct route *route);

/*
 * Sends a request and returns its answer, which is valid until the next call. Skips other messages
 * that come before the answer.
 */
const char *route_request(
	struct route *route, const char *method, const char *params, size_t *out_len);

/* The processor time that the command's own process has used so far. */
uint64_t route_cpu_ns(const struct route *route);

/* Closes the command's stdin and waits for its end; false if its exit status is not 0. */
bool route_stop(struct route *route);

#endif
