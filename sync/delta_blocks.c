/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>

#include "base/random.h"
#include "sync/delta_impl.h"

enum { SLOT_BITS = 18, SLOTS = 1 << SLOT_BITS };

static_assert(SLOTS == 2 * DELTA_BLOCKS_MAX, "half of the slots stay free");

void delta_blocks_init(struct delta_blocks *blocks, uint64_t size)
{
	*blocks = (struct delta_blocks){.block = DELTA_BLOCK_MIN, .power = 1};
	while (size / blocks->block >= DELTA_BLOCKS_MAX) {
		blocks->block *= 2;
	}
	random_fill(&blocks->multiplier, sizeof(blocks->multiplier));
	random_fill(&blocks->spread, sizeof(blocks->spread));
	blocks->multiplier |= 1;
	blocks->spread |= 1;
	for (size_t i = 0; i < blocks->block; i++) {
		blocks->power *= blocks->multiplier;
	}
}

void delta_blocks_finish(struct delta_blocks *blocks)
{
	free(blocks->sums);
	free(blocks->slots);
	blocks->sums = NULL;
	blocks->slots = NULL;
}

uint64_t delta_blocks_sum(const struct delta_blocks *blocks, const char *bytes)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < blocks->block; i++) {
		sum = sum * blocks->multiplier + (unsigned char)bytes[i] + 1;
	}
	return sum;
}

uint64_t delta_blocks_roll(const struct delta_blocks *blocks, uint64_t sum, const char *bytes)
{
	return sum * blocks->multiplier + (unsigned char)bytes[blocks->block] + 1 -
	       blocks->power * ((unsigned char)bytes[0] + 1U);
}

/*
 * Uses the highest bits: whatever the multiplier is, somebody could make sums that differ only in
 * these.
 */
static size_t slot_of(const struct delta_blocks *blocks, uint64_t sum)
{
	return (size_t)((sum * blocks->spread) >> (64 - SLOT_BITS));
}

/* The slot that has the sum, or is free for it; SLOTS after too many probes. */
static size_t find_slot(struct delta_blocks *blocks, uint64_t sum)
{
	size_t slot = slot_of(blocks, sum);
	for (int i = 0; i < DELTA_PROBES_MAX; i++) {
		uint32_t number = blocks->slots[slot];
		blocks->probes++;
		if (number == 0 || blocks->sums[number - 1] == sum) {
			return slot;
		}
		slot = (slot + 1) % SLOTS;
	}
	return SLOTS;
}

void delta_blocks_add(struct delta_blocks *blocks, uint32_t number, uint64_t sum)
{
	if (!blocks->slots) {
		blocks->sums = mem_alloc(DELTA_BLOCKS_MAX * sizeof(blocks->sums[0]));
		blocks->slots = mem_alloc_zero(SLOTS * sizeof(blocks->slots[0]));
	}
	blocks->sums[number] = sum;
	size_t slot = find_slot(blocks, sum);
	if (slot < SLOTS && blocks->slots[slot] == 0) {
		blocks->slots[slot] = number + 1;
	}
}

bool delta_blocks_find(struct delta_blocks *blocks, uint64_t sum, uint32_t *out_number)
{
	size_t slot = blocks->slots ? find_slot(blocks, sum) : SLOTS;
	if (slot == SLOTS || blocks->slots[slot] == 0) {
		return false;
	}
	*out_number = blocks->slots[slot] - 1;
	return true;
}
