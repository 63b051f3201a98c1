/* SPDX-License-Identifier: MIT */
#ifndef SYNC_ID_SET_H
#define SYNC_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/git.h"

/*
 * Ids, known by their first eight bytes: 16 to 32 bytes of memory each. An id that was
 * never added is taken for one that was once in 2^64 divided by the number of ids.
 * Zero-initialise.
 */
struct id_set {
	uint64_t *slots; // owned; 0: free
	size_t capacity, count;
};

void id_set_finish(struct id_set *set);
bool id_set_add(struct id_set *set, const git_oid *id); // false where it was there
bool id_set_has(const struct id_set *set, const git_oid *id);

#endif
