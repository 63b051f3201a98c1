/* SPDX-License-Identifier: MIT */
#ifdef __x86_64__
#include <immintrin.h>
#include <stdint.h>

#define FAST_TARGET __attribute__((target("avx2,bmi,popcnt")))

FAST_TARGET static inline uint64_t join(__m256i low, __m256i high)
{
	uint64_t first = (uint32_t)_mm256_movemask_epi8(low);
	return first | (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32;
}

FAST_TARGET static inline __m256i other(__m256i bytes)
{
	/* Digits become the ten smallest signed numbers. */
	bytes = _mm256_add_epi8(bytes, _mm256_set1_epi8((char)(0x80 - '0')));
	return _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8((char)(0x80 + 9)));
}

FAST_TARGET static inline __m256i load(const unsigned char *at)
{
	return _mm256_loadu_si256((const void *)at);
}

/* As signed numbers, bytes from 0x80 on are less than a space, too. */
FAST_TARGET static inline uint64_t odd_bits(const unsigned char *at)
{
	__m256i space = _mm256_set1_epi8(' ');
	return join(_mm256_cmpgt_epi8(space, load(at)), _mm256_cmpgt_epi8(space, load(at + 32)));
}

FAST_TARGET static inline uint64_t high_bits(const unsigned char *at)
{
	return join(load(at), load(at + 32));
}

FAST_TARGET static inline uint64_t above_bits(const unsigned char *at, unsigned char byte)
{
	__m256i all = _mm256_set1_epi8((char)byte);
	return join(_mm256_cmpgt_epi8(load(at), all), _mm256_cmpgt_epi8(load(at + 32), all));
}

FAST_TARGET static inline uint64_t equal_bits(const unsigned char *at, unsigned char byte)
{
	__m256i all = _mm256_set1_epi8((char)byte);
	return join(_mm256_cmpeq_epi8(all, load(at)), _mm256_cmpeq_epi8(all, load(at + 32)));
}

FAST_TARGET static inline uint64_t other_bits(const unsigned char *at)
{
	return join(other(load(at)), other(load(at + 32)));
}

/* A bit for each high nibble that one of "\/bfnrt has, and where it has this low one. */
FAST_TARGET static inline __m256i usual(__m256i bytes)
{
	const __m256i low = _mm256_setr_epi8(0, 0, 13, 0, 8, 0, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1, 0, 0,
		13, 0, 8, 0, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1);
	const __m256i high = _mm256_setr_epi8(0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0);
	__m256i nibbles = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
	__m256i both = _mm256_and_si256(
		_mm256_shuffle_epi8(low, bytes), _mm256_shuffle_epi8(high, nibbles));
	return _mm256_cmpgt_epi8(both, _mm256_setzero_si256());
}

FAST_TARGET static inline uint64_t usual_bits(const unsigned char *at)
{
	return join(usual(load(at)), usual(load(at + 32)));
}

FAST_TARGET static inline void copy_block(unsigned char *to, const unsigned char *at)
{
	_mm256_storeu_si256((void *)to, load(at));
	_mm256_storeu_si256((void *)(to + 32), load(at + 32));
}

#define FAST_NAME json_fast_avx2
#define FAST_TEXT "avx2"
#include "base/json_fast_impl.h"
#endif
