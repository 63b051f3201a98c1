/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hex.h"

static void expect(const unsigned char hash[SHA256_SIZE], const char *hex)
{
	char text[2 * SHA256_SIZE + 1];
	hex_write(text, hash, SHA256_SIZE);
	assert_string_equal(text, hex);
}

/* The examples of FIPS 180-4. */
static void test_hash_is_that_of_the_standard(void **state)
{
	static char million[1000000];
	unsigned char hash[SHA256_SIZE];
	sha256(hash, SPAN_LITERAL(""));
	expect(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256(hash, SPAN_LITERAL("abc"));
	expect(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sha256(hash, SPAN_LITERAL("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"));
	expect(hash, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(million, 'a', sizeof(million));
	sha256(hash, (struct span){million, sizeof(million)});
	expect(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Cases 1 and 2 of RFC 4231. */
static void test_code_is_that_of_the_standard(void **state)
{
	unsigned char hash[SHA256_SIZE];
	char key[20];
	memset(key, 0x0b, sizeof(key));
	sha256_hmac(hash, (struct span){key, sizeof(key)}, SPAN_LITERAL("Hi There"));
	expect(hash, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	sha256_hmac(hash, SPAN_LITERAL("Jefe"), SPAN_LITERAL("what do ya want for nothing?"));
	expect(hash, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void test_a_difference_in_any_byte_is_seen(void **state)
{
	unsigned char one[SHA256_SIZE] = {1, 2, 3};
	unsigned char other[SHA256_SIZE] = {1, 2, 3};
	assert_true(sha256_is_same(one, other));
	for (int i = 0; i < SHA256_SIZE; i++) {
		other[i] ^= 0x80;
		assert_false(sha256_is_same(one, other));
		other[i] ^= 0x80;
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash_is_that_of_the_standard),
		cmocka_unit_test(test_code_is_that_of_the_standard),
		cmocka_unit_test(test_a_difference_in_any_byte_is_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
