/* SPDX-License-Identifier: MIT */
#include "base/mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_masked(const char *text, const char *expected)
{
	char all[128] = "";
	char room[MASK_SIZE];
	struct span rest = span_of(text);
	while (rest.len > 0) {
		struct span shown = mask_next(&rest, room);
		strncat(all, shown.data, shown.len);
	}
	assert_string_equal(all, expected);
}

static void test_text_stays_as_it_is(void **state)
{
	assert_masked("a\tb\nc \xc3\xa4 \xe2\x82\xac", "a\tb\nc \xc3\xa4 \xe2\x82\xac");
}

static void test_controls_are_spelled(void **state)
{
	assert_masked("\x1b[31m\r\x07\x7f", "^[[31m^M^G^?");
	assert_masked("\xc2\x9b", "<9b>");
}

static void test_bytes_that_are_no_utf8_are_spelled(void **state)
{
	assert_masked("\x9b \xff \xc3", "<9b> <ff> <c3>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_stays_as_it_is),
		cmocka_unit_test(test_controls_are_spelled),
		cmocka_unit_test(test_bytes_that_are_no_utf8_are_spelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
