/* SPDX-License-Identifier: MIT */
#include "broker/secrets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const environment[] = {"PATH=/usr/bin:/bin", "MY_TOKEN=token-1234",
	"LONGER_TOKEN=token-12345678", "api_key=say \"please\"", "SHORT_KEY=abc", "NAMED=by-name-1",
	"KEYS=not-a-secret", "NO_VALUE", "PASSWD=a\nb\nc\nd", NULL};
static const char *const names[] = {"NAMED", NULL};

/* The text with the secrets of the environment above masked. */
static void assert_masked(const char *text, const char *expected)
{
	struct buf buf;
	struct secrets *secrets = secrets_create(environment, names);
	buf_init(&buf, SIZE_MAX / 2);
	assert_true(buf_append(&buf, span_of(text), NULL));
	secrets_mask(secrets, &buf);
	assert_int_equal(buf.len, strlen(expected));
	assert_memory_equal(buf_span(&buf).data, expected, buf.len);
	buf_finish(&buf);
	secrets_destroy(secrets);
}

static void test_values_are_masked_wherever_they_stand(void **state)
{
	assert_masked("\"token-1234\"", "\"***\"");
	assert_masked("\"--key=token-1234,token-1234token-1234\"", "\"--key=***,******\"");
	assert_masked("\"by-name-1\"", "\"***\"");
	assert_masked("", "");
}

static void test_a_secret_that_begins_with_another_is_masked_whole(void **state)
{
	assert_masked("\"token-12345678\"", "\"***\"");
}

static void test_values_are_found_as_json_spells_them(void **state)
{
	assert_masked("\"say \\\"please\\\"\"", "\"***\"");
	assert_masked("\"a\\nb\\nc\\nd\"", "\"***\"");
}

static void test_what_is_short_or_no_secret_stays(void **state)
{
	assert_masked("\"abc /usr/bin:/bin not-a-secret\"", "\"abc /usr/bin:/bin not-a-secret\"");
	assert_masked("\"token-123\"", "\"token-123\"");
}

static void test_there_may_be_no_names_and_no_secrets(void **state)
{
	static const char *const nothing[] = {NULL};
	struct buf buf;
	struct secrets *secrets = secrets_create(nothing, NULL);
	buf_init(&buf, 64);
	assert_true(buf_append(&buf, SPAN_LITERAL("\"text\""), NULL));
	secrets_mask(secrets, &buf);
	assert_true(span_is(buf_span(&buf), "\"text\""));
	buf_finish(&buf);
	secrets_destroy(secrets);
	secrets_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_masked_wherever_they_stand),
		cmocka_unit_test(test_a_secret_that_begins_with_another_is_masked_whole),
		cmocka_unit_test(test_values_are_found_as_json_spells_them),
		cmocka_unit_test(test_what_is_short_or_no_secret_stays),
		cmocka_unit_test(test_there_may_be_no_names_and_no_secrets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
