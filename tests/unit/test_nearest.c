/* SPDX-License-Identifier: MIT */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"

static const char *nearest_of(const char *word)
{
	static const char *const words[] = {"backend", "agent", "arg", "env", "policy"};
	struct nearest nearest;
	nearest_init(&nearest, word);
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		nearest_offer(&nearest, words[i]);
	}
	return nearest.best ? nearest.best : "";
}

static void test_near_words_are_found(void **state)
{
	assert_string_equal(nearest_of("bakend"), "backend");
	assert_string_equal(nearest_of("bckden"), "");
	assert_string_equal(nearest_of("bckedn"), "backend");
	assert_string_equal(nearest_of("backends"), "backend");
	assert_string_equal(nearest_of("agetn"), "agent");
	assert_string_equal(nearest_of("args"), "arg");
	assert_string_equal(nearest_of("agr"), "arg");
	assert_string_equal(nearest_of("emv"), "env");
	assert_string_equal(nearest_of("xyz"), "");
	assert_string_equal(nearest_of(""), "");
	assert_string_equal(nearest_of("a-word-that-is-far-too-long-to-be-near-any"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near_words_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
