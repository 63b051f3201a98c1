/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOOLHOST_OUTPUT_TAIL_H
#define BROKER_TOOLHOST_OUTPUT_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

/*
 * The end of a stream of bytes: a terminal's output, of which the newest bytes
 * up to a limit are kept (ACP, "terminal/create", outputByteLimit). What is read
 * from it is UTF-8: it begins and ends at a character boundary, and each byte
 * that belongs to no character becomes U+FFFD. Memory grows with what is there,
 * up to the limit.
 */
struct output_tail {
	char *ring;      // owned; NULL while nothing is kept
	size_t capacity; // allocated, at most limit
	size_t limit;    // bytes kept
	size_t start;    // where the oldest kept byte is
	size_t len;      // bytes kept now
	uint64_t total;  // bytes that ever came
};

void output_tail_init(struct output_tail *tail, size_t limit);
void output_tail_finish(struct output_tail *tail);

void output_tail_add(struct output_tail *tail, struct span bytes);

/* Keeps no byte any more; what comes is only counted. */
void output_tail_drop(struct output_tail *tail);

/*
 * Appends the newest text, at most max bytes of it; the buffer has room. True
 * where something before it was left out. A character that is not complete yet
 * is left out unless the stream has ended.
 */
bool output_tail_text(const struct output_tail *tail, size_t max, bool has_ended, struct buf *out);

/*
 * Appends what has come since *position (a count of the stream's bytes), read
 * from at most max bytes, and moves it on. Returns how many bytes in between are
 * not kept any more. The text may take three times the bytes it is read from.
 */
uint64_t output_tail_next(const struct output_tail *tail, uint64_t *position, size_t max,
	bool has_ended, struct buf *out);

#endif
