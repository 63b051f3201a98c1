/* SPDX-License-Identifier: MIT */
#include "base/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"

static void test_names_are_put_on_and_taken_off(void **state)
{
	char path[PATH_MAX] = "";
	assert_true(path_push(path, "a"));
	assert_true(path_push(path, "b"));
	assert_string_equal(path, "/a/b");
	path_pop(path);
	assert_string_equal(path, "/a");
	path_pop(path);
	path_pop(path);
	assert_string_equal(path, "");
}

static void test_a_path_does_not_grow_over_its_end(void **state)
{
	char path[PATH_MAX];
	memset(path, 'x', sizeof(path));
	path[PATH_MAX - 3] = '\0';
	assert_true(path_push(path, "a"));
	path_pop(path);
	assert_false(path_push(path, "ab"));
}

static void test_slashes_and_dots_are_no_names(void **state)
{
	static const char *const over[] = {"", "/", "//./", "."};
	static const char *const names[] = {"a", "/a", "..", "./..", ".a", "/./ "};
	for (size_t i = 0; i < ARRAY_LENGTH(over); i++) {
		assert_true(names_are_over(over[i]));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		assert_false(names_are_over(names[i]));
	}
}

static void test_a_step_up_is_seen_among_names(void **state)
{
	static const char *const up[] = {"..", "a/..", "../a", "/..", "a../../b"};
	static const char *const not_up[] = {"", "...", "a..", "..a", "a/..b", "a/b../c", "/."};
	for (size_t i = 0; i < ARRAY_LENGTH(up); i++) {
		assert_true(names_go_up(up[i]));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(not_up); i++) {
		assert_false(names_go_up(not_up[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_put_on_and_taken_off),
		cmocka_unit_test(test_a_path_does_not_grow_over_its_end),
		cmocka_unit_test(test_slashes_and_dots_are_no_names),
		cmocka_unit_test(test_a_step_up_is_seen_among_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
