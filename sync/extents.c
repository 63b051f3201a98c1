/* SPDX-License-Identifier: MIT */
#include "sync/extents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void extents_of_all(struct extents *extents, uint64_t size)
{
	extents->size = size;
	extents->count = size > 0;
	extents->items[0] = (struct extent){0, size};
}

bool extents_are_all(const struct extents *extents)
{
	return extents_bytes(extents) == extents->size;
}

uint64_t extents_bytes(const struct extents *extents)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < extents->count; i++) {
		bytes += extents->items[i].length;
	}
	return bytes;
}

/* ---- from a file ---- */

/* Only ENXIO means that there is no more data. */
struct extent extent_next(int fd, uint64_t at, uint64_t size)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);
	if (data < 0) {
		data = errno == ENXIO ? (off_t)size : (off_t)at;
	}
	uint64_t begin = (uint64_t)data < size ? (uint64_t)data : size;
	off_t hole = begin < size ? lseek(fd, data, SEEK_HOLE) : -1;
	uint64_t end = hole < 0 || (uint64_t)hole > size ? size : (uint64_t)hole;
	return (struct extent){begin, end - begin};
}

/* Merges parts whose hole is smaller than a grain. False if there are too many parts. */
static bool find_by(struct extents *extents, int fd, uint64_t size, uint64_t grain)
{
	*extents = (struct extents){.size = size};
	for (uint64_t at = 0; at < size;) {
		struct extent next = extent_next(fd, at, size);
		if (next.length == 0) {
			break;
		}
		uint64_t begin = next.offset - next.offset % grain;
		uint64_t over = (next.offset + next.length) % grain;
		uint64_t end = next.offset + next.length + (over ? grain - over : 0);
		end = end < size ? end : size;
		struct extent *last =
			extents->count > 0 ? &extents->items[extents->count - 1] : NULL;
		if (last && last->offset + last->length == begin) {
			last->length = end - last->offset;
		} else if (extents->count == EXTENTS_MAX) {
			return false;
		} else {
			extents->items[extents->count++] = (struct extent){begin, end - begin};
		}
		at = end;
	}
	return true;
}

void extents_of_file(struct extents *extents, int fd, uint64_t size)
{
	uint64_t grain = EXTENT_BLOCK;
	while (!find_by(extents, fd, size, grain)) {
		grain *= 2;
	}
}

/* ---- as text ---- */

static uint64_t blocks_of(uint64_t bytes)
{
	return bytes / EXTENT_BLOCK + (bytes % EXTENT_BLOCK > 0);
}

void extents_format(const struct extents *extents, char text[EXTENTS_TEXT_SIZE])
{
	size_t length = 0;
	text[0] = '\0';
	for (size_t i = 0; i < extents->count; i++) {
		const struct extent *extent = &extents->items[i];
		length += (size_t)snprintf(text + length, EXTENTS_TEXT_SIZE - length,
			"%s%" PRIu64 " %" PRIu64, i > 0 ? " " : "", extent->offset / EXTENT_BLOCK,
			blocks_of(extent->length));
	}
}

enum { LINE_SIZE = 40, DIGITS_MAX = 15 };

static bool set_wrong(struct error *err, const char *why)
{
	return error_set(
		err, ERROR_PROTOCOL, "the sandbox's list of the file's data is wrong: %s", why);
}

/* Reads byte by byte, because the bytes after the line belong to the next reader. */
static bool read_line(int fd, char line[LINE_SIZE], struct error *err)
{
	size_t length = 0;
	for (;;) {
		ssize_t count = read(fd, line + length, 1);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			return error_set_errno(err, errno, "reading");
		}
		if (count == 0) {
			return error_set(
				err, ERROR_UNAVAILABLE, "the stream ended before the data");
		}
		if (line[length] == '\n') {
			line[length] = '\0';
			return true;
		}
		if (++length == LINE_SIZE) {
			return set_wrong(err, "a line is too long");
		}
	}
}

/* Reads digits up to `end`; NULL if it is not a number. */
static const char *read_number(const char *at, char end, uint64_t *out)
{
	uint64_t number = 0;
	size_t digits = strspn(at, "0123456789");
	if (digits == 0 || digits > DIGITS_MAX || at[digits] != end) {
		return NULL;
	}
	for (size_t i = 0; i < digits; i++) {
		number = number * 10 + (uint64_t)(at[i] - '0');
	}
	*out = number;
	return at + digits + 1;
}

static bool add_line(struct extents *extents, const char *line, struct error *err)
{
	uint64_t first, count;
	const char *rest = read_number(line, ' ', &first);
	if (!rest || !read_number(rest, '\0', &count) || count == 0) {
		return set_wrong(err, "a line is not two numbers");
	}
	if (first + count > blocks_of(extents->size)) {
		return set_wrong(err, "a part lies beyond its end");
	}
	if (extents->count == EXTENTS_MAX) {
		return set_wrong(err, "there are too many parts");
	}
	const struct extent *last = extents->items + extents->count - 1;
	uint64_t offset = first * EXTENT_BLOCK, rest_bytes = extents->size - offset;
	if (extents->count > 0 && offset < last->offset + last->length) {
		return set_wrong(err, "its parts overlap");
	}
	bool reaches_end = count * EXTENT_BLOCK > rest_bytes;
	extents->items[extents->count++] =
		(struct extent){offset, reaches_end ? rest_bytes : count * EXTENT_BLOCK};
	return true;
}

bool extents_read(struct extents *extents, int fd, uint64_t size, struct error *err)
{
	char line[LINE_SIZE];
	*extents = (struct extents){.size = size};
	for (;;) {
		if (!read_line(fd, line, err)) {
			return false;
		}
		if (!*line) {
			return true;
		}
		if (!add_line(extents, line, err)) {
			return false;
		}
	}
}
