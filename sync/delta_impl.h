/* SPDX-License-Identifier: MIT */
#ifndef SYNC_DELTA_IMPL_H
#define SYNC_DELTA_IMPL_H

#include <stdatomic.h>

#include "sync/store_impl.h"

/* What delta_make.c is made of; everyone else uses sync/store_impl.h. */

enum { DELTA_BLOCK_MIN = 4096 };

/* ---- delta_window.c: reading two files, and what that may cost ---- */

/* Over `max`, and once cancelled, nothing can be read any more. */
struct delta_work {
	const atomic_bool *is_cancelled; // borrowed, may be NULL
	uint64_t done, max;              // bytes read or looked at, places asked for
	bool failed;                     // something could not be read
};

/* A part of a file in memory; the next one takes its place. */
struct delta_window {
	struct delta_work *work;   // borrowed
	int fd;                    // of the newer version
	struct delta_reader *from; // of the older one
	uint64_t size;             // of the file
	char *bytes;               // owned, `capacity`
	size_t capacity, len;
	uint64_t at;
};

/* Of a file that is compared by blocks of so many bytes. */
void delta_window_init(struct delta_window *window, uint64_t size, size_t block);
void delta_window_finish(struct delta_window *window);

bool delta_window_read(struct delta_window *window, char *to, size_t len, uint64_t at);

/* `len` bytes at `at`, which are there; NULL where they cannot be read. */
const char *delta_window_see(struct delta_window *window, uint64_t at, size_t len);

/* ---- delta_blocks.c: where the older version has a block of bytes, by its sum ---- */

/* Of a larger file the blocks are larger. More probes than these, and a block is not there. */
enum { DELTA_BLOCKS_MAX = 1 << 17, DELTA_PROBES_MAX = 32 };

/* Which blocks have equal sums, or share a slot, nobody can know beforehand. */
struct delta_blocks {
	uint64_t multiplier, spread; // random, odd
	uint64_t power;              // multiplier to the block
	size_t block;                // bytes
	uint64_t *sums;              // owned; NULL: none was added
	uint32_t *slots;             // owned: the number of a block and one; 0: free
	uint64_t probes;             // taken so far
};

void delta_blocks_init(struct delta_blocks *blocks, uint64_t size);
void delta_blocks_finish(struct delta_blocks *blocks);

uint64_t delta_blocks_sum(const struct delta_blocks *blocks, const char *bytes); // of one block

/* The sum of the block that begins one byte later: `bytes` has that one and the byte before. */
uint64_t delta_blocks_roll(const struct delta_blocks *blocks, uint64_t sum, const char *bytes);

/* Of blocks with equal sums only the first is kept, and one whose place is crowded is not. */
void delta_blocks_add(struct delta_blocks *blocks, uint32_t number, uint64_t sum);
bool delta_blocks_find(struct delta_blocks *blocks, uint64_t sum, uint32_t *out_number);

#endif
