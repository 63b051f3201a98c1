/* SPDX-License-Identifier: MIT */
#include "base/secrets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const environment[] = {"PATH=/usr/bin:/bin", "MY_TOKEN=token-1234",
	"LONGER_TOKEN=token-12345678", "api_key=say \"please\"", "SHORT_KEY=abc", "NAMED=by-name-1",
	"KEYS=not-a-secret", "NO_VALUE", "PASSWD=a\nb\nc\nd",
	"CAFE_KEY=caf\xc3\xa9/\xf0\x9f\x98\x80", "PIN_KEY=123456", "ODD_KEY=odd\xff-key", NULL};
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

/* RFC 8259, section 7: any character may be escaped. */
static void test_values_are_found_however_a_peer_spells_them(void **state)
{
	assert_masked("\"\\u0074oken-123\\u0034\"", "\"***\"");
	assert_masked("\"\\u0074\\u006F\\u006b\\u0065\\u006e-1234.\"", "\"***.\"");
	assert_masked("\"caf\xc3\xa9/\xf0\x9f\x98\x80\"", "\"***\"");
	assert_masked("\"caf\\u00e9\\/\\ud83d\\uDE00!\"", "\"***!\"");
	assert_masked("\"a\\u000Ab\\nc\\u000ad\"", "\"***\"");
	assert_masked("\"odd\\ufffd-key\"", "\"***\"");
	assert_masked("{\"token-1234\":[\"\\u0074oken-1234\"]}", "{\"***\":[\"***\"]}");
}

static void test_escapes_that_are_no_secret_stay_as_they_were(void **state)
{
	static const char *const texts[] = {"\"\\\\u0074oken-1234\"", "\"\\ud83d\"",
		"\"\\ud83d\\u0074\"", "\"\\\\\"", "[\"\\\"\",\"oken-1234\"]",
		"\"caf\\u00e9/\\ud83d\"", "\"token-123\",\"4\""};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_masked(texts[i], texts[i]);
	}
}

static void test_a_number_that_is_a_secret_becomes_a_string(void **state)
{
	assert_masked("{\"pin\":123456,\"n\":[-1.5e3,12345,true]}",
		"{\"pin\":\"***\",\"n\":[-1.5e3,12345,true]}");
	assert_masked("[1234567,\"is 123456\"]", "[\"***\",\"is ***\"]");
}

static void test_what_is_short_or_no_secret_stays(void **state)
{
	assert_masked("\"abc /usr/bin:/bin not-a-secret\"", "\"abc /usr/bin:/bin not-a-secret\"");
	assert_masked("\"token-123\"", "\"token-123\"");
}

/* The trace also has lines that are no JSON. */
static void test_broken_text_is_masked_too(void **state)
{
	static const char *const cases[][2] = {
		{"{\"a\" token-1234 \\u0074oken-1234", "{\"a\" *** ***"},
		{"say \\\"please\\\" 123456", "*** ***"},
		{"\\u00", "\\u00"},
		{"token-12\\u003", "token-12\\u003"},
		{"\\ud83d\\u", "\\ud83d\\u"},
		{"\\", "\\"},
		{"C:\\token-1234", "C:\\***"}, // in JSON it would be a tab and "oken-1234"
		{"C:\\\\token-1234", "C:\\\\***"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf buf;
		struct secrets *secrets = secrets_create(environment, names);
		buf_init(&buf, SIZE_MAX / 2);
		assert_true(buf_append(&buf, span_of(cases[i][0]), NULL));
		buf_fit(&buf, 0);
		secrets_mask_text(secrets, &buf, false);
		assert_true(span_is(buf_span(&buf), cases[i][1]));
		buf_finish(&buf);
		secrets_destroy(secrets);
	}
}

static void test_half_a_secret_does_not_stay_at_the_end_of_what_was_cut(void **state)
{
	static const struct {
		const char *text;
		const char *expected;
	} cases[] = {
		{"said token-12", "said "},
		{"said t", "said "},
		{"said token-1234", "said "}, // the longer one may have begun
		{"token-1234, token-1x", "***, token-1x"},
		{"\"\\u0074ok", "\""},
		{"said tok\\", "said "},
		{"said \\", "said "},
		{"said \\u00", "said "},
		{"said tok\\u006", "said "},
		{"said \\u0x", "said \\u0x"},
		{"said tok\\u0065n-12x", "said tok\\u0065n-12x"},
		{"said", "said"},
		{"", ""},
	};
	struct secrets *secrets = secrets_create(environment, names);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct buf buf;
		buf_init(&buf, 64);
		assert_true(buf_append(&buf, span_of(cases[i].text), NULL));
		secrets_mask_text(secrets, &buf, true);
		assert_int_equal(buf.len, strlen(cases[i].expected));
		if (buf.len > 0) {
			assert_memory_equal(buf_span(&buf).data, cases[i].expected, buf.len);
		}
		buf_finish(&buf);
	}
	secrets_destroy(secrets);
}

/* Code that passes a text on piece by piece must hold back bytes that may begin a secret. */
static void test_an_escape_that_is_cut_may_begin_a_secret(void **state)
{
	static const struct {
		const char *text;
		size_t begun;
	} cases[] = {
		{"\"\\", 1},
		{"\"\\u", 2},
		{"\"\\u007", 5},
		{"\"\\u0074", 6},
		{"\"token\\u00", 9},
		{"\"\\n", 0},
		{"\"\\u0078", 0},
	};
	struct secrets *secrets = secrets_create(environment, names);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_int_equal(secrets_begun(secrets, span_of(cases[i].text)), cases[i].begun);
	}
	secrets_destroy(secrets);
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

static void test_those_of_another_host_are_learned_once(void **state)
{
	static const char *const there[] = {"A_TOKEN=of-the-other-host", "PLAIN=plain-value",
		"NAMED=named-value", "SAME_KEY=of-the-other-host", "B_KEY=git push",
		"C_KEY=git push --force origin main", "D_KEY=rm-rf", NULL};
	static const char *const there_names[] = {"NAMED", NULL};
	static const char *const nothing[] = {NULL};
	struct buf buf;
	struct secrets *secrets = secrets_create(nothing, NULL);
	for (int i = 0; i < 1000; i++) { // each start of an agent learns
		assert_true(secrets_learn(secrets, there, there_names));
	}
	buf_init(&buf, 256);
	assert_true(buf_append(&buf,
		SPAN_LITERAL("[\"of-the-other-host plain-value named-value\","
			     "\"git push --force origin main; rm-rf\"]"),
		NULL));
	secrets_mask(secrets, &buf);
	assert_true(span_is(buf_span(&buf),
		"[\"*** plain-value ***\",\"git push --force origin main; rm-rf\"]"));
	buf_finish(&buf);
	secrets_destroy(secrets);
}

static void test_there_is_room_for_so_many(void **state)
{
	static const char *const nothing[] = {NULL};
	static char texts[257][48];
	const char *many[258] = {NULL};
	for (size_t i = 0; i < 257; i++) {
		snprintf(texts[i], sizeof(texts[i]), "N%zu_KEY=value-of-16-bytes-%zu", i, i);
		many[i] = texts[i];
	}
	struct secrets *secrets = secrets_create(nothing, NULL);
	assert_false(secrets_learn(secrets, many, NULL));
	many[256] = NULL;
	assert_true(secrets_learn(secrets, many, NULL)); // they are known
	secrets_destroy(secrets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_masked_wherever_they_stand),
		cmocka_unit_test(test_a_secret_that_begins_with_another_is_masked_whole),
		cmocka_unit_test(test_values_are_found_as_json_spells_them),
		cmocka_unit_test(test_values_are_found_however_a_peer_spells_them),
		cmocka_unit_test(test_escapes_that_are_no_secret_stay_as_they_were),
		cmocka_unit_test(test_a_number_that_is_a_secret_becomes_a_string),
		cmocka_unit_test(test_what_is_short_or_no_secret_stays),
		cmocka_unit_test(test_broken_text_is_masked_too),
		cmocka_unit_test(test_half_a_secret_does_not_stay_at_the_end_of_what_was_cut),
		cmocka_unit_test(test_an_escape_that_is_cut_may_begin_a_secret),
		cmocka_unit_test(test_there_may_be_no_names_and_no_secrets),
		cmocka_unit_test(test_those_of_another_host_are_learned_once),
		cmocka_unit_test(test_there_is_room_for_so_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
