/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SIMILAR_H
#define SYNC_SIMILAR_H

#include "sync/store.h"

/*
 * How much of a file is in another one, as git estimates it (gitdiffcore(7)): both are cut into
 * lines, or pieces of 64 bytes, and the bytes of the pieces that both have count, wherever they
 * stand.
 */
enum {
	SIMILAR_LEAST = 50, // percent, from which on a file is another one moved; git's default
	/* Of a file; one that has more is like no other. */
	SIMILAR_BYTES_MAX = 1 << 20,
	SIMILAR_PIECES_MAX = 1 << 16,
};

struct similar_piece {
	uint64_t hash;
	uint32_t bytes; // of all pieces with this hash
};

struct similar_print {
	uint64_t size;
	struct similar_piece *pieces; // owned; by hash; NULL: it is like no other
	size_t count;
};

/* Reads a file. Anything else, an empty one, and one that cannot be read have no pieces. */
void similar_print(
	struct similar_print *print, struct store *store, const struct store_entry *entry);
void similar_print_finish(struct similar_print *print);

/* Whether files of these sizes can be SIMILAR_LEAST percent alike. */
bool similar_may_be(uint64_t size, uint64_t other);

/* 0 to 100. */
unsigned similar_percent(const struct similar_print *a, const struct similar_print *b);

#endif
