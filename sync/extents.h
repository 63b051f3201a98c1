/* SPDX-License-Identifier: MIT */
#ifndef SYNC_EXTENTS_H
#define SYNC_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Which parts of a file are data; all else of it reads as zeros and need not travel. Between here
 * and a sandbox they are counted in blocks of 64 KiB, of which the last one may be a part of one.
 */
enum { EXTENTS_MAX = 256, EXTENT_BLOCK = 64 << 10, EXTENTS_TEXT_SIZE = EXTENTS_MAX * 32 + 1 };

struct extent {
	uint64_t offset, length; // bytes
};

/* In the order of the file; none is empty, none overlaps another or goes beyond the size. */
struct extents {
	uint64_t size; // of the file
	size_t count;
	struct extent items[EXTENTS_MAX];
};

/* All of a file is data. */
void extents_of_all(struct extents *extents, uint64_t size);
bool extents_are_all(const struct extents *extents);
uint64_t extents_bytes(const struct extents *extents); // how many are data

/*
 * What lseek(2) says of a file's holes; its place changes. Where there are more than EXTENTS_MAX
 * parts, the smallest holes between them are data, too.
 */
void extents_of_file(struct extents *extents, int fd, uint64_t size);

/* The next data of a file at or after `at`, and its end; both are `size` where there is none. */
struct extent extent_next(int fd, uint64_t at, uint64_t size);

/* "FIRST COUNT", in blocks, of each; blanks between them. */
void extents_format(const struct extents *extents, char text[EXTENTS_TEXT_SIZE]);

/*
 * Reads what a sandbox says of a file of `size` bytes: a line "FIRST COUNT" of each and an empty
 * line; not one byte more is read. ERROR_PROTOCOL where that can be no such file, or there are
 * more than EXTENTS_MAX, ERROR_UNAVAILABLE where it ends before. Blocks.
 */
bool extents_read(struct extents *extents, int fd, uint64_t size, struct error *err) ATTR_NODISCARD;

#endif
