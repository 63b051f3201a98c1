/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SIMILAR_H
#define SYNC_SIMILAR_H

#include "sync/store.h"

/*
 * Estimates how much of one file another contains, as git does (gitdiffcore(7)): it cuts both into
 * lines, or pieces of 64 bytes, and counts the bytes of the pieces that both files have, at any
 * place.
 */
enum {
	SIMILAR_LEAST = 50, // percent; from here on a file counts as moved; git's default
	/* Limits for one file; a larger one resembles no other. */
	SIMILAR_BYTES_MAX = 1 << 20,
	SIMILAR_PIECES_MAX = 1 << 16,
};

struct similar_piece {
	uint64_t hash;
	uint32_t bytes; // of all pieces with this hash
};

struct similar_print {
	uint64_t size;
	struct similar_piece *pieces; // owned; sorted by hash; NULL: it resembles no other
	size_t count;
};

/* Reads a file. Anything else, an empty file, or an unreadable one has no pieces. */
void similar_print(
	struct similar_print *print, struct store *store, const struct store_entry *entry);
void similar_print_finish(struct similar_print *print);

/* Whether files of these sizes can be SIMILAR_LEAST percent alike. */
bool similar_may_be(uint64_t size, uint64_t other);

/* 0 to 100. */
unsigned similar_percent(const struct similar_print *a, const struct similar_print *b);

#endif
