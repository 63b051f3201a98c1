/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include <assert.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 64, LENGTH_SIZE = 8, INNER = 0x36, OUTER = 0x5c };

struct state {
	uint32_t words[8];
	unsigned char block[BLOCK];
	uint64_t length; // bytes so far
};

static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
	0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint32_t constants[ROUNDS] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152,
	0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
	0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624,
	0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3,
	0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t word, unsigned count)
{
	return word >> count | word << (32 - count);
}

static void take_block(struct state *state)
{
	uint32_t w[ROUNDS];
	uint32_t v[8];
	memcpy(w, state->block, BLOCK);
	for (int i = 0; i < BLOCK / 4; i++) {
		w[i] = be32toh(w[i]);
	}
	for (int i = BLOCK / 4; i < ROUNDS; i++) {
		uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	memcpy(v, state->words, sizeof(v));
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t s1 = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25);
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t first = v[7] + s1 + choice + constants[i] + w[i];
		uint32_t s0 = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22);
		uint32_t most = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += first;
		v[0] = first + s0 + most;
	}
	for (int i = 0; i < 8; i++) {
		state->words[i] += v[i];
	}
}

static void add(struct state *state, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	for (size_t i = 0; i < size; i++) {
		state->block[state->length++ % BLOCK] = at[i];
		if (state->length % BLOCK == 0) {
			take_block(state);
		}
	}
}

static void begin(struct state *state)
{
	memcpy(state->words, start, sizeof(start));
	state->length = 0;
}

static void end(struct state *state, unsigned char out[SHA256_SIZE])
{
	uint64_t bits = htobe64(state->length * 8);
	add(state, "\x80", 1);
	while (state->length % BLOCK != BLOCK - LENGTH_SIZE) {
		add(state, "", 1);
	}
	add(state, &bits, sizeof(bits));
	for (int i = 0; i < 8; i++) {
		uint32_t word = htobe32(state->words[i]);
		memcpy(out + 4 * i, &word, sizeof(word));
	}
}

void sha256(unsigned char out[SHA256_SIZE], struct span bytes)
{
	struct state state;
	begin(&state);
	add(&state, bytes.data, bytes.len);
	end(&state, out);
}

void sha256_hmac(unsigned char out[SHA256_SIZE], struct span key, struct span bytes)
{
	struct state state;
	unsigned char pad[2][BLOCK];
	assert(key.len <= BLOCK);
	memset(pad[0], INNER, BLOCK);
	memset(pad[1], OUTER, BLOCK);
	for (size_t i = 0; i < key.len; i++) {
		pad[0][i] ^= (unsigned char)key.data[i];
		pad[1][i] ^= (unsigned char)key.data[i];
	}
	begin(&state);
	add(&state, pad[0], BLOCK);
	add(&state, bytes.data, bytes.len);
	end(&state, out);
	begin(&state);
	add(&state, pad[1], BLOCK);
	add(&state, out, SHA256_SIZE);
	end(&state, out);
	explicit_bzero(pad, sizeof(pad));
	explicit_bzero(&state, sizeof(state));
}

bool sha256_is_same(const unsigned char one[SHA256_SIZE], const unsigned char other[SHA256_SIZE])
{
	unsigned differences = 0;
	for (int i = 0; i < SHA256_SIZE; i++) {
		differences |= (unsigned)(one[i] ^ other[i]);
	}
	return differences == 0;
}
