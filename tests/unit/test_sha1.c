/* SPDX-License-Identifier: MIT */
#include "base/sha1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hex.h"

/* Adds the bytes in pieces of `piece` bytes. */
static void expect(struct span bytes, size_t piece, const char *hex)
{
	struct sha1 sha1;
	unsigned char hash[SHA1_SIZE];
	char text[2 * SHA1_SIZE + 1];
	sha1_begin(&sha1);
	for (size_t at = 0; at < bytes.len; at += piece) {
		size_t length = bytes.len - at < piece ? bytes.len - at : piece;
		sha1_add(&sha1, (struct span){bytes.data + at, length});
	}
	sha1_end(&sha1, hash);
	hex_write(text, hash, SHA1_SIZE);
	assert_string_equal(text, hex);
}

/* The examples of FIPS 180-4. */
static void test_hash_is_that_of_the_standard(void **state)
{
	static char million[1000000];
	expect(SPAN_LITERAL(""), 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	expect(SPAN_LITERAL("abc"), 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
	expect(SPAN_LITERAL("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), 56,
		"84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	memset(million, 'a', sizeof(million));
	expect((struct span){million, sizeof(million)}, sizeof(million),
		"34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

static void test_pieces_of_any_size_give_the_same_hash(void **state)
{
	static char million[1000000];
	memset(million, 'a', sizeof(million));
	for (size_t piece = 1; piece < 300; piece += 13) {
		expect((struct span){million, sizeof(million)}, piece,
			"34aa973cd4c4daa4f61eeb2bdbad27316534016f");
	}
}

/* The padding fits into the last block, or needs one more. */
static void test_every_length_around_a_block_is_padded(void **state)
{
	static const struct {
		size_t length;
		const char *hex;
	} cases[] = {
		{55, "c1c8bbdc22796e28c0e15163d20899b65621d65a"},
		{56, "c2db330f6083854c99d4b5bfb6e8f29f201be699"},
		{63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5"},
		{64, "0098ba824b5c16427bd7a1122a5a442a25ec644d"},
		{65, "11655326c708d70319be2610e8a57d9a5b959d3b"},
	};
	char bytes[65];
	memset(bytes, 'a', sizeof(bytes));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		expect((struct span){bytes, cases[i].length}, 7, cases[i].hex);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash_is_that_of_the_standard),
		cmocka_unit_test(test_pieces_of_any_size_give_the_same_hash),
		cmocka_unit_test(test_every_length_around_a_block_is_padded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
