/* SPDX-License-Identifier: MIT */
#ifndef SYNC_ID_SET_H
#define SYNC_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/git.h"

/*
 * A set of ids, known by their first eight bytes. Needs 16 to 32 bytes of memory per id. An id that
 * was not added counts as present with a probability of the number of ids divided by 2^64.
 * Zero-initialise.
 */
struct id_set {
	uint64_t *slots; // owned; 0: free
	size_t capacity, count;
};

void id_set_finish(struct id_set *set);
bool id_set_add(struct id_set *set, const git_oid *id); // false if it was present
bool id_set_has(const struct id_set *set, const git_oid *id);

#endif
