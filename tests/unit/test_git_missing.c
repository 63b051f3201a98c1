/* SPDX-License-Identifier: MIT */
#include "base/git.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/library_fixture.h"

static void test_a_missing_library_names_the_package(void **state)
{
	library_fixture_soname = "libgit2-that-is-nowhere.so.1";
	struct error err;
	assert_null(git_open(&err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "libgit2-that-is-nowhere.so.1"));
	assert_non_null(strstr(err.text, ": is the package libgit2-"));
}

static void test_a_library_without_the_functions_is_refused(void **state)
{
	library_fixture_soname = "libc.so.6";
	struct error err;
	assert_null(git_open(&err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "libc.so.6 has no function git_"));
	assert_null(git_open(&err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_missing_library_names_the_package),
		cmocka_unit_test(test_a_library_without_the_functions_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
