/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <string.h>

uint64_t hash_bytes(uint64_t hash, struct span bytes)
{
	for (size_t i = 0; i < bytes.len; i++) {
		hash = (hash ^ (unsigned char)bytes.data[i]) * UINT64_C(1099511628211);
	}
	return hash;
}

uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(hash, (struct span){text, strlen(text) + 1});
}
