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

static void test_bytes_are_written_and_read(void **state)
{
	const unsigned char bytes[] = {0x00, 0x7f, 0x80, 0xff};
	unsigned char back[sizeof(bytes)];
	char text[2 * sizeof(bytes) + 1];
	hex_write(text, bytes, sizeof(bytes));
	assert_string_equal(text, "007f80ff");
	assert_true(hex_read(back, sizeof(back), span_of("007F80ff")));
	assert_memory_equal(back, bytes, sizeof(bytes));
	static const char *const others[] = {"", "007f80f", "007f80ff0", "007f80fg", "0x7f80ff"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_false(hex_read(back, sizeof(back), span_of(others[i])));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_cases_are_digits_and_nothing_else_is),
		cmocka_unit_test(test_bytes_are_written_and_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
