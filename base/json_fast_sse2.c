/* SPDX-License-Identifier: MIT */
#ifdef __x86_64__
#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline uint64_t join(__m128i a, __m128i b, __m128i c, __m128i d)
{
	uint64_t low = (uint64_t)_mm_movemask_epi8(a) | (uint64_t)_mm_movemask_epi8(b) << 16;
	uint64_t high = (uint64_t)_mm_movemask_epi8(c) | (uint64_t)_mm_movemask_epi8(d) << 16;
	return low | high << 32;
}

static inline __m128i load(const unsigned char *at)
{
	return _mm_loadu_si128((const void *)at);
}

/* As signed numbers, bytes from 0x80 on are less than a space, too. */
static inline __m128i odd(const unsigned char *at)
{
	return _mm_cmplt_epi8(load(at), _mm_set1_epi8(' '));
}

static inline __m128i equal(const unsigned char *at, unsigned char byte)
{
	return _mm_cmpeq_epi8(load(at), _mm_set1_epi8((char)byte));
}

/* Adding makes the digits the ten smallest signed numbers. */
static inline __m128i other(const unsigned char *at)
{
	__m128i bytes = _mm_add_epi8(load(at), _mm_set1_epi8((char)(0x80 - '0')));
	return _mm_cmpgt_epi8(bytes, _mm_set1_epi8((char)(0x80 + 9)));
}

static inline uint64_t odd_bits(const unsigned char *at)
{
	return join(odd(at), odd(at + 16), odd(at + 32), odd(at + 48));
}

static inline uint64_t high_bits(const unsigned char *at)
{
	return join(load(at), load(at + 16), load(at + 32), load(at + 48));
}

static inline __m128i above(const unsigned char *at, unsigned char byte)
{
	return _mm_cmpgt_epi8(load(at), _mm_set1_epi8((char)byte));
}

static inline uint64_t above_bits(const unsigned char *at, unsigned char byte)
{
	return join(
		above(at, byte), above(at + 16, byte), above(at + 32, byte), above(at + 48, byte));
}

static inline uint64_t equal_bits(const unsigned char *at, unsigned char byte)
{
	return join(
		equal(at, byte), equal(at + 16, byte), equal(at + 32, byte), equal(at + 48, byte));
}

static inline uint64_t other_bits(const unsigned char *at)
{
	return join(other(at), other(at + 16), other(at + 32), other(at + 48));
}

static inline __m128i usual(const unsigned char *at)
{
	static const unsigned char others[] = {'\\', '/', 'b', 'f', 'n', 'r', 't'};
	__m128i found = equal(at, '"');
	for (size_t i = 0; i < sizeof(others); i++) {
		found = _mm_or_si128(found, equal(at, others[i]));
	}
	return found;
}

static inline uint64_t usual_bits(const unsigned char *at)
{
	return join(usual(at), usual(at + 16), usual(at + 32), usual(at + 48));
}

static inline void copy_block(unsigned char *to, const unsigned char *at)
{
	for (int i = 0; i < 64; i += 16) {
		_mm_storeu_si128((void *)(to + i), load(at + i));
	}
}

#define FAST_TARGET
#define FAST_NAME json_fast_sse2
#define FAST_TEXT "sse2"
#include "base/json_fast_impl.h"
#endif
