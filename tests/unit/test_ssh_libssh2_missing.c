/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/library_fixture.h"

static void expect(const char *words)
{
	struct error err;
	assert_null(ssh2_open(&err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_string_equal(err.reason, "SSH_UNSUPPORTED");
	if (!strstr(err.text, words)) {
		fail_msg("not there: %s: %s", words, err.text);
	}
	assert_non_null(strstr(err.text, "ssh-client = openssh"));
}

static void test_a_missing_library_names_the_package_and_the_other_client(void **state)
{
	library_fixture_soname = "libssh2-that-is-nowhere.so.1";
	expect("libssh2-that-is-nowhere.so.1");
	expect("is the package libssh2-1 installed?");
}

static void test_a_library_without_the_functions_is_refused(void **state)
{
	library_fixture_soname = "libc.so.6";
	expect("libc.so.6 has no function libssh2_");
	expect("libc.so.6 has no function libssh2_");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_missing_library_names_the_package_and_the_other_client),
		cmocka_unit_test(test_a_library_without_the_functions_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
