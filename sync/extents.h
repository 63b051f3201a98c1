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
 * Which parts of a file are data. The rest reads as zeros and need not be transferred. In the
 * messages to and from a sandbox they are counted in blocks of 64 KiB; the last block may be
 * partial.
 */
enum { EXTENTS_MAX = 256, EXTENT_BLOCK = 64 << 10, EXTENTS_TEXT_SIZE = EXTENTS_MAX * 32 + 1 };

struct extent {
	uint64_t offset, length; // bytes
};

/* In the order of the file; none is empty, overlaps another, or goes beyond the size. */
struct extents {
	uint64_t size; // of the file
	size_t count;
	struct extent items[EXTENTS_MAX];
};

/* Makes the whole file data. */
void extents_of_all(struct extents *extents, uint64_t size);
bool extents_are_all(const struct extents *extents);
uint64_t extents_bytes(const struct extents *extents); // bytes of data

/*
 * Reads a file's holes with lseek(2), which moves the file offset. If there are more than
 * EXTENTS_MAX parts, the smallest holes count as data.
 */
void extents_of_file(struct extents *extents, int fd, uint64_t size);

/* The next data of a file at or after `at`, and its end; both are `size` if there is none. */
struct extent extent_next(int fd, uint64_t at, uint64_t size);

/* Writes "FIRST COUNT", in blocks, for each part, separated by spaces. */
void extents_format(const struct extents *extents, char text[EXTENTS_TEXT_SIZE]);

/*
 * Reads a sandbox's description of a file of `size` bytes: a line "FIRST COUNT" per part, then an
 * empty line. Reads no byte beyond that. ERROR_PROTOCOL if no such file can exist, or there are
 * more than EXTENTS_MAX parts; ERROR_UNAVAILABLE if the input ends too early. Blocks.
 */
bool extents_read(struct extents *extents, int fd, uint64_t size, struct error *err) ATTR_NODISCARD;

#endif
