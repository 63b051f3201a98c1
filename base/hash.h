/* SPDX-License-Identifier: MIT */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

#include "base/span.h"

/*
 * FNV-1a, 64 bits (draft-eastlake-fnv): for names, and to see that something has changed. Who can
 * choose what is hashed can make two alike. Begin with HASH_START; what is hashed goes after
 * others.
 */
#define HASH_START UINT64_C(14695981039346656037)
uint64_t hash_bytes(uint64_t hash, struct span bytes);

/* A text and its terminating NUL, so that "ab" "c" is not "a" "bc". */
uint64_t hash_text(uint64_t hash, const char *text);

#endif
