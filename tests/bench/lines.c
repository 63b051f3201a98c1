/* SPDX-License-Identifier: MIT */
#include "tests/bench/lines.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES_FIRST = 128 * 1024, LINES_MAX = 64 * 1024 * 1024 };

void lines_init(struct lines *lines, int fd)
{
	*lines = (struct lines){.fd = fd, .size = LINES_FIRST};
	lines->data = malloc(lines->size);
	if (lines->data == NULL) {
		abort();
	}
}

void lines_finish(struct lines *lines)
{
	free(lines->data);
	*lines = (struct lines){.fd = -1};
}

/*
 * Makes room at the end: moves the held bytes to the front, and doubles the memory if it is full.
 */
static void make_room(struct lines *lines)
{
	if (lines->begin > 0) {
		memmove(lines->data, lines->data + lines->begin, lines->end - lines->begin);
		lines->end -= lines->begin;
		lines->begin = 0;
	}
	if (lines->end == lines->size) {
		assert(lines->size > 0 && lines->size <= LINES_MAX / 2);
		lines->size *= 2;
		lines->data = realloc(lines->data, lines->size);
		if (lines->data == NULL) {
			abort();
		}
	}
}

char *lines_next(struct lines *lines, size_t *out_len)
{
	size_t searched = 0;

	for (;;) {
		char *start = lines->data + lines->begin;
		const size_t held = lines->end - lines->begin;
		const char *newline = memchr(start + searched, '\n', held - searched);
		if (newline != NULL) {
			*out_len = (size_t)(newline - start) + 1;
			lines->begin += *out_len;
			return start;
		}
		searched = held;
		if (held == 0 || lines->end == lines->size) {
			make_room(lines);
		}
		const ssize_t got =
			read(lines->fd, lines->data + lines->end, lines->size - lines->end);
		if (got == 0 || (got < 0 && errno != EINTR)) {
			return NULL;
		}
		lines->end += got > 0 ? (size_t)got : 0;
	}
}

bool write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		const ssize_t put = write(fd, data, len);
		if (put < 0 && errno != EINTR) {
			return false;
		}
		if (put > 0) {
			data += put;
			len -= (size_t)put;
		}
	}
	return true;
}

bool text_between(
	const char *data, size_t len, const char *before, char stop, char *out, size_t out_size)
{
	const char *from = memmem(data, len, before, strlen(before));
	if (from == NULL) {
		return false;
	}
	from += strlen(before);
	const char *to = memchr(from, stop, len - (size_t)(from - data));
	if (to == NULL || (size_t)(to - from) >= out_size) {
		return false;
	}
	memcpy(out, from, (size_t)(to - from));
	out[to - from] = '\0';
	return true;
}
