/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_LINES_H
#define TESTS_BENCH_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a blocking descriptor line by line; lines of up to 64 MiB. */
struct lines {
	int fd; // borrowed
	char *data;
	size_t size;
	size_t begin; // bytes read but not yet handed out: [begin, end)
	size_t end;
};

void lines_init(struct lines *lines, int fd);
void lines_finish(struct lines *lines);

/*
 * The next line with its newline, which the caller may change until the next
 * call; NULL at the end of the input.
 */
char *lines_next(struct lines *lines, size_t *out_len);

/* Writes all bytes; false if the reader has gone. */
bool write_all(int fd, const char *data, size_t len);

/* The text from the first `before` to the character `stop`; false if there is none. */
bool text_between(
	const char *data, size_t len, const char *before, char stop, char *out, size_t out_size);

#endif
