/* SPDX-License-Identifier: MIT */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

#include "base/span.h"

/*
 * FNV-1a, 64 bits (draft-eastlake-fnv), for names and for detecting changes. It is not
 * cryptographic: whoever chooses the input can make two inputs collide. Begin with HASH_START; each
 * further call continues the hash of the previous one.
 */
#define HASH_START UINT64_C(14695981039346656037)
uint64_t hash_bytes(uint64_t hash, struct span bytes);

/* Hashes a text and its terminating NUL, so that "ab" "c" and "a" "bc" differ. */
uint64_t hash_text(uint64_t hash, const char *text);

#endif
