/* SPDX-License-Identifier: MIT */
#include "providers/ssh/crypto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"},
	{"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"},
	{"\xfb\xff\xfe", "+//+"}};

static void test_base64_is_that_of_the_rfc(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(vectors); i++) {
		uint8_t *bytes = NULL;
		size_t len = 99;
		char *text = base64_encode(span_of(vectors[i][0]));
		assert_string_equal(text, vectors[i][1]);
		assert_true(base64_decode(span_of(text), &bytes, &len));
		assert_int_equal(len, strlen(vectors[i][0]));
		assert_memory_equal(bytes, vectors[i][0], len);
		free(bytes);
		free(text);
	}
}

static void test_what_is_no_base64_is_refused(void **state)
{
	static const char *const cases[] = {"Z", "Zg",
		"Zg=", "Zg==Zg==", "Zh==", "Zm9=", "====", "Zm9v\n", "Z=9v", "Zm 9", "Zm-v",
		"Zm9v="};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		uint8_t *bytes = NULL;
		size_t len = 0;
		assert_false(base64_decode(span_of(cases[i]), &bytes, &len));
		assert_null(bytes);
	}
}

static void assert_digest(const uint8_t *digest, size_t size, const char *expected)
{
	char *text = base64_encode((struct span){(const char *)digest, size});
	assert_string_equal(text, expected);
	free(text);
}

/* FIPS 180-4's "abc"; RFC 2202, 3, cases 1 and 2. */
static void test_the_digests_are_those_of_their_standards(void **state)
{
	uint8_t sha256[CRYPTO_SHA256_SIZE];
	uint8_t hmac[CRYPTO_SHA1_SIZE];
	char key[20];
	struct error err;
	memset(key, 0x0b, sizeof(key));
	assert_true(crypto_sha256(span_of("abc"), sha256, &err));
	assert_digest(sha256, sizeof(sha256), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
	assert_true(
		crypto_hmac_sha1((struct span){key, sizeof(key)}, span_of("Hi There"), hmac, &err));
	assert_digest(hmac, sizeof(hmac), "thcxhlUFcmTii8C2+zeMjvFGvgA=");
	assert_true(crypto_hmac_sha1(
		span_of("Jefe"), span_of("what do ya want for nothing?"), hmac, &err));
	assert_digest(hmac, sizeof(hmac), "7/zfauXrL6LSdBbV8YTfnCWafHk=");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64_is_that_of_the_rfc),
		cmocka_unit_test(test_what_is_no_base64_is_refused),
		cmocka_unit_test(test_the_digests_are_those_of_their_standards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
