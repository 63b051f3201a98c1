/* SPDX-License-Identifier: MIT */
#include "base/settings.h"
#include "tests/support/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static const char *const colours[] = {"red", "green", "blue", NULL};

static const struct setting_key text_key = {.name = "text", .type = SETTING_TEXT};
static const struct setting_key bool_key = {
	.name = "flag", .type = SETTING_BOOL, .fallback = "false"};
static const struct setting_key count_key = {
	.name = "count", .type = SETTING_COUNT, .fallback = "7", .min = 1, .max = 1000000};
static const struct setting_key bytes_key = {
	.name = "bytes", .type = SETTING_BYTES, .fallback = "64m", .min = 1024, .max = 1 << 30};
static const struct setting_key time_key = {
	.name = "time", .type = SETTING_DURATION, .fallback = "2s", .min = 1, .max = 3600000};
static const struct setting_key patience_key = {
	.name = "patience", .type = SETTING_DURATION, .fallback = "never", .min = 1};
static const struct setting_key age_key = {
	.name = "age", .type = SETTING_DURATION, .fallback = "720h", .min = 1, .is_age = true};
static const struct setting_key choice_key = {
	.name = "choice", .type = SETTING_CHOICE, .choices = colours};
static const struct setting_key list_key = {.name = "list", .type = SETTING_LIST};
static const struct setting_key env_key = {.name = "env", .type = SETTING_ENV_LIST};
static const struct setting_key names_key = {.name = "names", .type = SETTING_NAME_LIST};

static void test_the_last_value_of_a_key_wins(void **state)
{
	struct settings settings;
	settings_init(&settings);
	assert_null(settings_get(&settings, "a"));
	settings_add(&settings, "a", "1", "file");
	settings_add(&settings, "b", "2", "file");
	settings_add(&settings, "a", "3", "command line");
	assert_string_equal(settings_get(&settings, "a"), "3");
	assert_string_equal(settings_find(&settings, "a")->origin, "command line");
	assert_string_equal(settings_get(&settings, "b"), "2");
	settings_finish(&settings);
	assert_true(list_is_empty(&settings.list));
}

static void test_a_key_without_value_is_kept_as_such(void **state)
{
	struct settings settings;
	settings_init(&settings);
	settings_add(&settings, "flag", NULL, "file");
	assert_non_null(settings_find(&settings, "flag"));
	assert_null(settings_get(&settings, "flag"));
	settings_finish(&settings);
}

static void test_values_are_checked_by_type(void **state)
{
	static const struct {
		const struct setting_key *key;
		const char *value;
		const char *mistake; // NULL: the value is good
	} cases[] = {
		{&text_key, "x", NULL},
		{&text_key, "", "value | empty"},
		{&bool_key, "true", NULL},
		{&bool_key, "Off", NULL},
		{&bool_key, "1", NULL},
		{&bool_key, "maybe", "true | false | \"maybe\""},
		{&bool_key, "", "true | false | \"\""},
		{&count_key, "1", NULL},
		{&count_key, "10k", NULL},
		{&count_key, "0", "1 to 1000000 | \"0\""},
		{&count_key, "1g", "1 to 1000000 | \"1g\""},
		{&count_key, "-1", "1 to 1000000 | \"-1\""},
		{&count_key, "1.5", "1 to 1000000 | \"1.5\""},
		{&count_key, "", "1 to 1000000 | \"\""},
		{&count_key, "k", "1 to 1000000 | \"k\""},
		{&count_key, "9999999999999999999", "1 to 1000000 | \"9999999999999999999\""},
		{&count_key, "9223372036854775807g", "1 to 1000000 | \"9223372036854775807g\""},
		{&bytes_key, "1K", NULL},
		{&bytes_key, "1g", NULL},
		{&bytes_key, "1023", "expected a size from 1k to 1g, got \"1023\""},
		{&bytes_key, "2g", "expected a size from 1k to 1g, got \"2g\""},
		{&bytes_key, "1kb", "expected a size from 1k to 1g, got \"1kb\""},
		{&time_key, "1ms", NULL},
		{&time_key, "30", NULL},
		{&time_key, "1h", NULL},
		{&time_key, "0d", "expected a time from 1ms to 1h, got \"0d\""},
		{&time_key, "0", "expected a time from 1ms to 1h, got \"0\""},
		{&time_key, "61m", "expected a time from 1ms to 1h, got \"61m\""},
		{&time_key, "never", "expected a time from 1ms to 1h, got \"never\""},
		{&time_key, "1d", "expected a time from 1ms to 1h, got \"1d\""},
		{&patience_key, "never", NULL},
		{&age_key, "never", NULL},
		{&age_key, "720h", NULL},
		{&age_key, "3650d", NULL},
		{&patience_key, "48h", NULL},
		{&patience_key, "0",
			"expected a time like 500ms, 30s, 5m or 1h, or never, got \"0\""},
		{&patience_key, "9000h",
			"expected a time like 500ms, 30s, 5m or 1h, or never, got \"9000h\""},
		{&choice_key, "green", NULL},
		{&choice_key, "Green", "red | green | blue | \"Green\""},
		{&choice_key, "", "red | green | blue | \"\""},
		{&list_key, "", NULL},
		{&list_key, "anything", NULL},
		{&env_key, "A=", NULL},
		{&env_key, "_a9=b=c", NULL},
		{&env_key, "A", "NAME=value | letters, digits and _"},
		{&env_key, "=b", "NAME=value | letters, digits and _"},
		{&env_key, "9A=b", "NAME=value | letters, digits and _"},
		{&env_key, "A-B=c", "NAME=value | letters, digits and _"},
		{&names_key, "API_KEY", NULL},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err = {0};
		bool good = setting_check(cases[i].key, cases[i].value, &err);
		if (cases[i].mistake) {
			assert_false(good);
			assert_int_equal(err.code, ERROR_CONFIG);
			assert_names(err.text, cases[i].mistake);
		} else if (!good) {
			fail_msg("%s = \"%s\": %s", cases[i].key->name, cases[i].value, err.text);
		}
	}
}

static void test_a_secret_in_the_wrong_place_is_not_repeated(void **state)
{
	const struct setting_key *const keys[] = {&env_key, &names_key};
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		struct error err;
		assert_false(setting_check(keys[i], "sk-very-secret", &err));
		assert_null(strstr(err.text, "secret"));
	}
	struct error err;
	assert_false(setting_check(&names_key, "API_KEY=hunter2", &err));
	assert_null(strstr(err.text, "hunter2"));
}

static void test_numbers_have_units(void **state)
{
	static const struct {
		const struct setting_key *key;
		const char *value; // NULL: the fallback
		long long number;
	} cases[] = {
		{&count_key, NULL, 7},
		{&count_key, "2k", 2048},
		{&bytes_key, NULL, 64LL << 20},
		{&bytes_key, "1g", 1LL << 30},
		{&time_key, NULL, 2000},
		{&time_key, "500ms", 500},
		{&time_key, "5", 5000},
		{&time_key, "5s", 5000},
		{&time_key, "2m", 120000},
		{&time_key, "1H", 3600000},
		{&patience_key, NULL, 0},
		{&patience_key, "1s", 1000},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct settings settings;
		settings_init(&settings);
		if (cases[i].value) {
			settings_add(&settings, cases[i].key->name, cases[i].value, "file");
		}
		assert_int_equal(settings_number(&settings, cases[i].key), cases[i].number);
		settings_finish(&settings);
	}
}

static void test_truth_has_several_spellings(void **state)
{
	struct settings settings;
	settings_init(&settings);
	assert_false(settings_bool(&settings, &bool_key));
	settings_add(&settings, "flag", "YES", "file");
	assert_true(settings_bool(&settings, &bool_key));
	settings_add(&settings, "flag", "0", "file");
	assert_false(settings_bool(&settings, &bool_key));
	settings_finish(&settings);
}

static void test_quoting_stays_on_one_line(void **state)
{
	char text[64];
	assert_string_equal(setting_quote(text, sizeof(text), "a b"), "\"a b\"");
	assert_string_equal(setting_quote(text, sizeof(text), ""), "\"\"");
	assert_string_equal(
		setting_quote(text, sizeof(text), "a\n\t\"\\\x01z"), "\"a\\n\\t\\\"\\\\\\x01z\"");
}

static void test_quoting_cuts_between_characters(void **state)
{
	const char *const long_text = "éééééééééééééééééééé";
	for (size_t size = 8; size < 48; size++) {
		char text[48];
		memset(text, 'x', sizeof(text));
		setting_quote(text, size, long_text);
		size_t len = strlen(text);
		assert_true(len < size);
		if (size >= 46) {
			assert_int_equal(len, 42);
			assert_int_equal(text[len - 1], '"');
		} else {
			assert_string_equal(text + len - 4, "…\"");
			assert_int_equal((len - 5) % 2, 0);
		}
	}
}

static void test_choices_read_as_a_sentence(void **state)
{
	static const char *const one[] = {"a", NULL};
	static const char *const two[] = {"a", "b", NULL};
	char text[64];
	assert_string_equal(setting_choices_text(text, sizeof(text), one), "a");
	assert_string_equal(setting_choices_text(text, sizeof(text), two), "a or b");
	assert_string_equal(
		setting_choices_text(text, sizeof(text), colours), "red, green or blue");
	assert_string_equal(setting_choices_text(text, 8, colours), "red," TEXT_CUT);
}

static void test_only_lists_repeat(void **state)
{
	assert_true(setting_is_list(&list_key));
	assert_true(setting_is_list(&env_key));
	assert_true(setting_is_list(&names_key));
	assert_false(setting_is_list(&text_key));
	assert_ptr_equal(setting_key_find(&text_key, 1, "text"), &text_key);
	assert_null(setting_key_find(&text_key, 1, "tex"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_value_of_a_key_wins),
		cmocka_unit_test(test_a_key_without_value_is_kept_as_such),
		cmocka_unit_test(test_values_are_checked_by_type),
		cmocka_unit_test(test_a_secret_in_the_wrong_place_is_not_repeated),
		cmocka_unit_test(test_numbers_have_units),
		cmocka_unit_test(test_truth_has_several_spellings),
		cmocka_unit_test(test_quoting_stays_on_one_line),
		cmocka_unit_test(test_quoting_cuts_between_characters),
		cmocka_unit_test(test_choices_read_as_a_sentence),
		cmocka_unit_test(test_only_lists_repeat),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
