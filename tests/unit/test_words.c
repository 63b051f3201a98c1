/* SPDX-License-Identifier: MIT */
#include "base/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_words_are_copied_to_the_end(void **state)
{
	static const char *const more[] = {"b", "", NULL};
	char **words = NULL;
	assert_int_equal(words_count(words), 0);
	words_append(&words, "a");
	words_append_all(&words, more);
	words_append_all(&words, NULL);
	assert_int_equal(words_count(words), 3);
	assert_string_equal(words[0], "a");
	assert_string_equal(words[1], "b");
	assert_string_equal(words[2], "");
	assert_null(words[3]);
	words_free(words);
	words_free(NULL);
}

static void test_every_value_of_a_key_is_a_word(void **state)
{
	struct settings settings;
	settings_init(&settings);
	settings_add(&settings, "arg", "one", "FILE");
	settings_add(&settings, "other", "x", "FILE");
	settings_add(&settings, "arg", "two", "FILE");
	char **words = words_of_settings(&settings, "arg");
	assert_int_equal(words_count(words), 2);
	assert_string_equal(words[0], "one");
	assert_string_equal(words[1], "two");
	words_append_settings(&words, &settings, "other");
	assert_string_equal(words[2], "x");
	words_free(words);
	words = words_of_settings(&settings, "none");
	assert_non_null(words);
	assert_null(words[0]);
	words_free(words);
	settings_finish(&settings);
}

static void test_a_list_is_copied_and_looked_into(void **state)
{
	const char *const list[] = {"one", "two", NULL};
	char **copy = words_copy(list);
	char **empty = words_copy(NULL);
	assert_int_equal(words_count(copy), 2);
	assert_string_equal(copy[1], "two");
	assert_ptr_not_equal(copy[1], list[1]);
	assert_non_null(empty);
	assert_null(empty[0]);
	assert_true(words_contain(list, "two"));
	assert_false(words_contain(list, "tw"));
	assert_false(words_contain(NULL, "two"));
	words_free(copy);
	words_free(empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_list_is_copied_and_looked_into),
		cmocka_unit_test(test_words_are_copied_to_the_end),
		cmocka_unit_test(test_every_value_of_a_key_is_a_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
