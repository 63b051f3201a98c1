/* SPDX-License-Identifier: MIT */
#include "sync/id_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static uint64_t key_of(const git_oid *id)
{
	uint64_t key;
	memcpy(&key, id->id, sizeof(key));
	return key ? key : 1;
}

/* The slot that has the key, or would take it. The ids are hashes: their bits need no mixing. */
static uint64_t *find_slot(const struct id_set *set, uint64_t key)
{
	size_t at = key & (set->capacity - 1);
	while (set->slots[at] != 0 && set->slots[at] != key) {
		at = (at + 1) & (set->capacity - 1);
	}
	return &set->slots[at];
}

static void grow(struct id_set *set)
{
	struct id_set larger = {.capacity = set->capacity ? set->capacity * 2 : 1024};
	larger.slots = mem_alloc_zero(larger.capacity * sizeof(larger.slots[0]));
	larger.count = set->count;
	for (size_t i = 0; i < set->capacity; i++) {
		if (set->slots[i] != 0) {
			*find_slot(&larger, set->slots[i]) = set->slots[i];
		}
	}
	free(set->slots);
	*set = larger;
}

void id_set_finish(struct id_set *set)
{
	free(set->slots);
	*set = (struct id_set){0};
}

bool id_set_add(struct id_set *set, const git_oid *id)
{
	uint64_t key = key_of(id);
	if (set->count * 2 >= set->capacity) {
		grow(set);
	}
	uint64_t *slot = find_slot(set, key);
	if (*slot != 0) {
		return false;
	}
	*slot = key;
	set->count++;
	return true;
}

bool id_set_has(const struct id_set *set, const git_oid *id)
{
	return set->capacity > 0 && *find_slot(set, key_of(id)) != 0;
}
