/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOOLHOST_OUTPUT_TAIL_H
#define BROKER_TOOLHOST_OUTPUT_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

/*
 * The last bytes of a stream, up to a limit: a terminal's output (ACP, "terminal/create",
 * outputByteLimit). Text read from it is UTF-8: it begins and ends at a character boundary, and
 * each byte that belongs to no character becomes U+FFFD. Memory grows with the content, up to the
 * limit.
 */
struct output_tail {
	char *ring;      // owned; NULL if nothing is kept
	size_t capacity; // allocated, at most limit
	size_t limit;    // bytes to keep
	size_t start;    // offset of the oldest byte
	size_t len;      // bytes kept now
	uint64_t total;  // bytes of the stream so far
};

void output_tail_init(struct output_tail *tail, size_t limit);
void output_tail_finish(struct output_tail *tail);

void output_tail_add(struct output_tail *tail, struct span bytes);

/* Frees the bytes; from now on only counts what arrives. */
void output_tail_drop(struct output_tail *tail);

/*
 * Appends the newest text, at most max bytes; the buffer has room. True if earlier text was left
 * out. An incomplete character at the end is left out unless the stream has ended.
 */
bool output_tail_text(const struct output_tail *tail, size_t max, bool has_ended, struct buf *out);

/*
 * Appends the text that has arrived since *position (a byte count of the stream), from at most the
 * last max bytes, and advances *position. Returns how many bytes after the old position are
 * missing. The text may be three times as long as its bytes.
 */
uint64_t output_tail_next(const struct output_tail *tail, uint64_t *position, size_t max,
	bool has_ended, struct buf *out);

#endif
