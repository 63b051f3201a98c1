/* SPDX-License-Identifier: MIT */
#ifdef __aarch64__
#include <arm_neon.h>
#include <stdint.h>

/* The lowest bit of each of 64 bytes, which are 0 or 0xff; the first byte has the lowest bit. */
static inline uint64_t join(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d)
{
	static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
	uint8x16_t mask = vld1q_u8(bits);
	uint8x16_t low = vpaddq_u8(vandq_u8(a, mask), vandq_u8(b, mask));
	uint8x16_t high = vpaddq_u8(vandq_u8(c, mask), vandq_u8(d, mask));
	uint8x16_t all = vpaddq_u8(low, high);
	return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

static inline uint8x16_t odd(const unsigned char *at)
{
	uint8x16_t bytes = vld1q_u8(at);
	return vorrq_u8(vcltq_u8(bytes, vdupq_n_u8(' ')), vcgeq_u8(bytes, vdupq_n_u8(0x80)));
}

static inline uint8x16_t equal(const unsigned char *at, unsigned char byte)
{
	return vceqq_u8(vld1q_u8(at), vdupq_n_u8(byte));
}

static inline uint8x16_t other(const unsigned char *at)
{
	return vcgtq_u8(vsubq_u8(vld1q_u8(at), vdupq_n_u8('0')), vdupq_n_u8(9));
}

static inline uint64_t odd_bits(const unsigned char *at)
{
	return join(odd(at), odd(at + 16), odd(at + 32), odd(at + 48));
}

static inline uint8x16_t above(const unsigned char *at, unsigned char byte)
{
	return vcgtq_u8(vld1q_u8(at), vdupq_n_u8(byte));
}

static inline uint64_t above_bits(const unsigned char *at, unsigned char byte)
{
	return join(
		above(at, byte), above(at + 16, byte), above(at + 32, byte), above(at + 48, byte));
}

static inline uint64_t high_bits(const unsigned char *at)
{
	return above_bits(at, 0x7f);
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

/* A bit for each high nibble that one of "\/bfnrt has, and where it has this low one. */
static inline uint8x16_t usual(const unsigned char *at)
{
	static const uint8_t low[16] = {0, 0, 13, 0, 8, 0, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1};
	static const uint8_t high[16] = {0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0};
	uint8x16_t bytes = vld1q_u8(at);
	return vtstq_u8(vqtbl1q_u8(vld1q_u8(low), vandq_u8(bytes, vdupq_n_u8(15))),
		vqtbl1q_u8(vld1q_u8(high), vshrq_n_u8(bytes, 4)));
}

static inline uint64_t usual_bits(const unsigned char *at)
{
	return join(usual(at), usual(at + 16), usual(at + 32), usual(at + 48));
}

static inline void copy_block(unsigned char *to, const unsigned char *at)
{
	for (int i = 0; i < 64; i += 16) {
		vst1q_u8(to + i, vld1q_u8(at + i));
	}
}

#define FAST_TARGET
#define FAST_NAME json_fast_neon
#define FAST_TEXT "neon"
#include "base/json_fast_impl.h"
#endif
