/* SPDX-License-Identifier: MIT */
#include "base/mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
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

static void test_what_shows_the_rest_in_another_order_is_spelled(void **state)
{
	assert_masked("a\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9z",
		"a<U+202A><U+202E><U+2066><U+2069>z");
	/* Neighbours of these: a mark, a narrow blank, and the character that joins emojis. */
	assert_masked(
		"\xe2\x80\x8f \xe2\x80\xaf \xe2\x80\x8d", "\xe2\x80\x8f \xe2\x80\xaf \xe2\x80\x8d");
}

static void test_a_line_is_one_line(void **state)
{
	char *line = mask_line(SPAN_LITERAL("a\tb\nc\x1b[m\xe2\x80\xae"));
	assert_string_equal(line, "a b c^[[m<U+202E>");
	free(line);
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
		cmocka_unit_test(test_what_shows_the_rest_in_another_order_is_spelled),
		cmocka_unit_test(test_a_line_is_one_line),
		cmocka_unit_test(test_bytes_that_are_no_utf8_are_spelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
