/* SPDX-License-Identifier: MIT */
#ifndef SYNC_DELTA_IMPL_H
#define SYNC_DELTA_IMPL_H

#include <stdatomic.h>

#include "sync/store_impl.h"

/* The internals of delta_make.c; everyone else uses sync/store_impl.h. */

enum { DELTA_BLOCK_MIN = 4096 };

/* ---- delta_window.c: reads two files, and limits the work ---- */

/* After `max` is exceeded or the work is cancelled, all reads fail. */
struct delta_work {
	const atomic_bool *is_cancelled; // borrowed, may be NULL
	uint64_t done, max;              // bytes read or compared, and places looked up
	bool failed;                     // a read failed
};

/* A part of a file in memory; the next read replaces it. */
struct delta_window {
	struct delta_work *work;   // borrowed
	int fd;                    // the newer version
	struct delta_reader *from; // the older version
	uint64_t size;             // of the whole file
	char *bytes;               // owned, `capacity`
	size_t capacity, len;
	uint64_t at;
};

/* For a file that is compared in blocks of `block` bytes. */
void delta_window_init(struct delta_window *window, uint64_t size, size_t block);
void delta_window_finish(struct delta_window *window);

bool delta_window_read(struct delta_window *window, char *to, size_t len, uint64_t at);

/* `len` bytes at `at`, which must exist; NULL if they cannot be read. */
const char *delta_window_see(struct delta_window *window, uint64_t at, size_t len);

/* ---- delta_blocks.c: finds a block of bytes in the older version by its sum ---- */

/* Larger files have larger blocks. After DELTA_PROBES_MAX probes a block counts as missing. */
enum { DELTA_BLOCKS_MAX = 1 << 17, DELTA_PROBES_MAX = 32 };

/* Random factors: nobody can predict which blocks have equal sums or share a slot. */
struct delta_blocks {
	uint64_t multiplier, spread; // random, odd
	uint64_t power;              // multiplier to the power of `block`
	size_t block;                // bytes
	uint64_t *sums;              // owned; NULL: no block was added
	uint32_t *slots;             // owned: the number of a block plus one; 0: free
	uint64_t probes;             // taken so far
};

void delta_blocks_init(struct delta_blocks *blocks, uint64_t size);
void delta_blocks_finish(struct delta_blocks *blocks);

uint64_t delta_blocks_sum(const struct delta_blocks *blocks, const char *bytes); // of one block

/*
 * The sum of the block that begins one byte later. `bytes` begins with the byte before that block.
 */
uint64_t delta_blocks_roll(const struct delta_blocks *blocks, uint64_t sum, const char *bytes);

/* Keeps only the first of blocks with equal sums, and none whose slot is crowded. */
void delta_blocks_add(struct delta_blocks *blocks, uint32_t number, uint64_t sum);
bool delta_blocks_find(struct delta_blocks *blocks, uint64_t sum, uint32_t *out_number);

#endif
