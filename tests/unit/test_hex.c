/* SPDX-License-Identifier: MIT */
#include "base/hex.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_both_cases_are_digits_and_nothing_else_is(void **state)
{
	const char *lower = "0123456789abcdef";
	const char *upper = "0123456789ABCDEF";
	for (int byte = CHAR_MIN; byte <= CHAR_MAX; byte++) {
		const char *found = byte ? strchr(lower, byte) : NULL;
		const char *other = byte ? strchr(upper, byte) : NULL;
		int expected = found ? (int)(found - lower) : other ? (int)(other - upper) : -1;
		assert_int_equal(hex_digit((char)byte), expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_cases_are_digits_and_nothing_else_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
