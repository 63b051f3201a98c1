/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_SHAPE_H
#define TESTS_BENCH_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The fixed messages that the benchmarks send. The agent writes them and the client compares every
 * byte of them, so both build them here. Each line has its number in eight digits, at its end and
 * at each place that needs one.
 */
enum line_kind {
	LINE_UPDATE,  // a session/update of the agent's; the whole line has the shape's size
	LINE_REQUEST, // a _bench/echo of the client's; the whole line has the shape's size
	LINE_ANSWER,  // the agent's answer to it: the params as the result
};

enum { LINE_MARKS = 4, LINE_FIRST_NUMBER = 10000000 };

struct line {
	char *data; // ends with a newline; owned
	size_t len;
	size_t marks[LINE_MARKS]; // where the number stands
	size_t mark_count;
};

/* Builds a line of the shape with this name; false if there is no such shape. */
bool line_init(struct line *line, const char *shape, enum line_kind kind, const char *session);
void line_finish(struct line *line);

/* Writes the number, eight digits: LINE_FIRST_NUMBER and up. */
void line_set_number(struct line *line, unsigned number);

#endif
