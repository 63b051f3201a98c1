/* SPDX-License-Identifier: MIT */
#ifndef BASE_SHA1_H
#define BASE_SHA1_H

#include <stdint.h>

#include "base/span.h"

/*
 * SHA-1 (FIPS 180-4), only for the checksums that git's file formats need. It does not notice the
 * known attacks, so ids of contents come from libgit2, which does.
 */
enum { SHA1_SIZE = 20, SHA1_BLOCK = 64 };

struct sha1 {
	uint32_t words[5];
	unsigned char block[SHA1_BLOCK]; // the last bytes, if they do not fill a block
	uint64_t length;                 // bytes so far
};

void sha1_begin(struct sha1 *sha1);
void sha1_add(struct sha1 *sha1, struct span bytes);
void sha1_end(struct sha1 *sha1, unsigned char out[SHA1_SIZE]);

#endif
