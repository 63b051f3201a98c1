/* SPDX-License-Identifier: MIT */
#include "base/sha1.h"

#include <endian.h>
#include <string.h>

enum { LENGTH_SIZE = 8 };

static const uint32_t start[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

static uint32_t turn(uint32_t word, unsigned count)
{
	return word << count | word >> (32 - count);
}

static uint32_t choose(uint32_t b, uint32_t c, uint32_t d)
{
	return d ^ (b & (c ^ d));
}

static uint32_t parity(uint32_t b, uint32_t c, uint32_t d)
{
	return b ^ c ^ d;
}

static uint32_t majority(uint32_t b, uint32_t c, uint32_t d)
{
	return (b & c) | (d & (b | c));
}

/* The word of round i, from the last sixteen words. */
#define WORD(i)                                                                                    \
	((i) < 16 ? w[(i)&15]                                                                      \
		  : (w[(i)&15] = turn(w[((i) + 13) & 15] ^ w[((i) + 8) & 15] ^ w[((i) + 2) & 15] ^ \
					      w[(i)&15],                                           \
			     1)))

/* One round. The next one has the variables in other roles, so that nothing needs to move. */
#define ROUND(a, b, c, d, e, mix, constant, i)                                                     \
	do {                                                                                       \
		(e) += turn(a, 5) + mix(b, c, d) + (constant) + WORD(i);                           \
		(b) = turn(b, 30);                                                                 \
	} while (0)

#define ROUNDS_5(mix, constant, i)                                                                 \
	do {                                                                                       \
		ROUND(a, b, c, d, e, mix, constant, i);                                            \
		ROUND(e, a, b, c, d, mix, constant, (i) + 1);                                      \
		ROUND(d, e, a, b, c, mix, constant, (i) + 2);                                      \
		ROUND(c, d, e, a, b, mix, constant, (i) + 3);                                      \
		ROUND(b, c, d, e, a, mix, constant, (i) + 4);                                      \
	} while (0)

#define ROUNDS_20(mix, constant, i)                                                                \
	do {                                                                                       \
		ROUNDS_5(mix, constant, i);                                                        \
		ROUNDS_5(mix, constant, (i) + 5);                                                  \
		ROUNDS_5(mix, constant, (i) + 10);                                                 \
		ROUNDS_5(mix, constant, (i) + 15);                                                 \
	} while (0)

static void take_block(uint32_t words[5], const void *block)
{
	uint32_t w[16];
	uint32_t a = words[0], b = words[1], c = words[2], d = words[3], e = words[4];
	memcpy(w, block, SHA1_BLOCK);
	for (int i = 0; i < 16; i++) {
		w[i] = be32toh(w[i]);
	}
	ROUNDS_20(choose, 0x5a827999, 0);
	ROUNDS_20(parity, 0x6ed9eba1, 20);
	ROUNDS_20(majority, 0x8f1bbcdc, 40);
	ROUNDS_20(parity, 0xca62c1d6, 60);
	words[0] += a;
	words[1] += b;
	words[2] += c;
	words[3] += d;
	words[4] += e;
}

void sha1_begin(struct sha1 *sha1)
{
	memcpy(sha1->words, start, sizeof(start));
	sha1->length = 0;
}

void sha1_add(struct sha1 *sha1, struct span bytes)
{
	while (bytes.len > 0) {
		size_t held = sha1->length % SHA1_BLOCK;
		size_t taken = SHA1_BLOCK - held < bytes.len ? SHA1_BLOCK - held : bytes.len;
		if (taken == SHA1_BLOCK) {
			take_block(sha1->words, bytes.data);
		} else {
			memcpy(sha1->block + held, bytes.data, taken);
			if (held + taken == SHA1_BLOCK) {
				take_block(sha1->words, sha1->block);
			}
		}
		sha1->length += taken;
		bytes.data += taken;
		bytes.len -= taken;
	}
}

void sha1_end(struct sha1 *sha1, unsigned char out[SHA1_SIZE])
{
	static const char padding[SHA1_BLOCK] = {(char)0x80};
	uint64_t bits = htobe64(sha1->length * 8);
	size_t held = sha1->length % SHA1_BLOCK;
	size_t room = SHA1_BLOCK - LENGTH_SIZE;
	size_t length = held < room ? room - held : room + SHA1_BLOCK - held;
	sha1_add(sha1, (struct span){padding, length});
	sha1_add(sha1, (struct span){(const char *)&bits, sizeof(bits)});
	for (int i = 0; i < 5; i++) {
		uint32_t word = htobe32(sha1->words[i]);
		memcpy(out + 4 * i, &word, sizeof(word));
	}
}
