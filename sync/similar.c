/* SPDX-License-Identifier: MIT */
#include "sync/similar.h"

#include <stdlib.h>

enum { PIECE_MAX = 64 };

/* FNV-1a. A collision made on purpose only makes files look similar. */
static uint64_t hash_of(struct span piece)
{
	uint64_t hash = 14695981039346656037U;
	for (size_t i = 0; i < piece.len; i++) {
		hash = (hash ^ (unsigned char)piece.data[i]) * 1099511628211U;
	}
	return hash;
}

static size_t piece_length(struct span rest)
{
	size_t most = rest.len < PIECE_MAX ? rest.len : PIECE_MAX;
	const char *end = memchr(rest.data, '\n', most);
	return end ? (size_t)(end - rest.data) + 1 : most;
}

static int compare_pieces(const void *a, const void *b)
{
	uint64_t x = ((const struct similar_piece *)a)->hash;
	uint64_t y = ((const struct similar_piece *)b)->hash;
	return (x > y) - (x < y);
}

static size_t join_equal(struct similar_piece *pieces, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (kept > 0 && pieces[kept - 1].hash == pieces[i].hash) {
			pieces[kept - 1].bytes += pieces[i].bytes;
		} else {
			pieces[kept++] = pieces[i];
		}
	}
	return kept;
}

static void cut(struct similar_print *print, struct span rest)
{
	size_t room = 0;
	while (rest.len > 0) {
		if (print->count == SIMILAR_PIECES_MAX) {
			similar_print_finish(print);
			return;
		}
		if (print->count == room) {
			room = room ? 2 * room : 64;
			print->pieces = mem_realloc(print->pieces, room * sizeof(*print->pieces));
		}
		struct span piece = {rest.data, piece_length(rest)};
		print->pieces[print->count++] =
			(struct similar_piece){hash_of(piece), (uint32_t)piece.len};
		rest = (struct span){rest.data + piece.len, rest.len - piece.len};
	}
	if (print->count > 0) {
		qsort(print->pieces, print->count, sizeof(*print->pieces), compare_pieces);
		print->count = join_equal(print->pieces, print->count);
		print->pieces = mem_realloc(print->pieces, print->count * sizeof(*print->pieces));
	}
}

void similar_print(
	struct similar_print *print, struct store *store, const struct store_entry *entry)
{
	struct buf content;
	struct error ignored;
	*print = (struct similar_print){0};
	if ((entry->mode != ENTRY_FILE && entry->mode != ENTRY_EXECUTABLE) ||
		!store_size(store, entry, &print->size, &ignored) ||
		print->size > SIMILAR_BYTES_MAX) {
		return;
	}
	buf_init(&content, SIMILAR_BYTES_MAX);
	if (store_read(store, &entry->id, SIMILAR_BYTES_MAX, &content, &ignored)) {
		cut(print, buf_span(&content));
	}
	buf_finish(&content);
}

void similar_print_finish(struct similar_print *print)
{
	free(print->pieces);
	*print = (struct similar_print){0};
}

bool similar_may_be(uint64_t size, uint64_t other)
{
	uint64_t most = size > other ? size : other;
	uint64_t least = size > other ? other : size;
	return most <= SIMILAR_BYTES_MAX && least * 100 >= most * SIMILAR_LEAST;
}

unsigned similar_percent(const struct similar_print *a, const struct similar_print *b)
{
	uint64_t most = a->size > b->size ? a->size : b->size;
	uint64_t common = 0;
	size_t j = 0;
	if (a->count == 0 || b->count == 0) {
		return 0;
	}
	for (size_t i = 0; i < a->count; i++) {
		while (j < b->count && b->pieces[j].hash < a->pieces[i].hash) {
			j++;
		}
		if (j < b->count && b->pieces[j].hash == a->pieces[i].hash) {
			uint32_t x = a->pieces[i].bytes;
			uint32_t y = b->pieces[j].bytes;
			common += x < y ? x : y;
		}
	}
	return (unsigned)(common * 100 / most);
}
