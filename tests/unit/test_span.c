/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/span.h"

static const struct span null_span = {NULL, 0};

static void test_literal_and_text_leave_the_terminator_out(void **state)
{
	assert_int_equal(SPAN_LITERAL("abc").len, 3);
	assert_int_equal(SPAN_LITERAL("").len, 0);
	assert_int_equal(SPAN_LITERAL("a\0b").len, 3);
	assert_int_equal(span_of("a\0b").len, 1);
}

static void test_spans_are_equal_by_length_and_bytes(void **state)
{
	char copy[] = "abc";
	assert_true(span_equals(SPAN_LITERAL("abc"), span_of(copy)));
	assert_false(span_equals(SPAN_LITERAL("abc"), SPAN_LITERAL("abd")));
	assert_false(span_equals(SPAN_LITERAL("abc"), SPAN_LITERAL("ab")));
	assert_false(span_equals(SPAN_LITERAL("a\0b"), SPAN_LITERAL("a\0c")));
	assert_true(span_is(span_of(copy), "abc"));
	assert_false(span_is(span_of(copy), "abcd"));
}

static void test_empty_spans_are_equal_wherever_they_point(void **state)
{
	assert_true(span_equals(null_span, null_span));
	assert_true(span_equals(null_span, SPAN_LITERAL("")));
	assert_true(span_is(null_span, ""));
	assert_false(span_equals(null_span, SPAN_LITERAL("a")));
}

static void test_prefix_is_found_only_at_the_front_and_whole(void **state)
{
	assert_true(span_starts_with(SPAN_LITERAL("abc"), SPAN_LITERAL("ab")));
	assert_true(span_starts_with(SPAN_LITERAL("abc"), SPAN_LITERAL("abc")));
	assert_false(span_starts_with(SPAN_LITERAL("abc"), SPAN_LITERAL("abcd")));
	assert_false(span_starts_with(SPAN_LITERAL("abc"), SPAN_LITERAL("b")));
	assert_true(span_starts_with(SPAN_LITERAL("abc"), null_span));
	assert_true(span_starts_with(null_span, null_span));
	assert_false(span_starts_with(null_span, SPAN_LITERAL("a")));
}

static int order(struct span a, struct span b)
{
	int found = span_compare(a, b);
	return (found > 0) - (found < 0);
}

static void test_spans_are_ordered_by_bytes_and_then_by_length(void **state)
{
	assert_int_equal(order(SPAN_LITERAL("ab"), SPAN_LITERAL("ab")), 0);
	assert_int_equal(order(SPAN_LITERAL("ab"), SPAN_LITERAL("b")), -1);
	assert_int_equal(order(SPAN_LITERAL("ab"), SPAN_LITERAL("a")), 1);
	assert_int_equal(order(SPAN_LITERAL("\xff"), SPAN_LITERAL("a")), 1);
	assert_int_equal(order((struct span){NULL, 0}, SPAN_LITERAL("a")), -1);
	assert_int_equal(order((struct span){NULL, 0}, (struct span){NULL, 0}), 0);
}

static void test_words_are_taken_with_the_blanks_before_them(void **state)
{
	struct span rest = SPAN_LITERAL("  one\ttwo\0x  ");
	assert_true(span_is(span_take_word(&rest, " \t"), "one"));
	assert_true(span_equals(span_take_word(&rest, " \t"), SPAN_LITERAL("two\0x")));
	assert_int_equal(span_take_word(&rest, " \t").len, 0);
	assert_int_equal(rest.len, 0);
	assert_int_equal(span_take_word(&rest, " \t").len, 0);
}

static void test_a_text_is_taken_only_with_its_end(void **state)
{
	struct span rest = SPAN_LITERAL("one\0\0cut");
	assert_string_equal(span_take_text(&rest), "one");
	assert_string_equal(span_take_text(&rest), "");
	assert_null(span_take_text(&rest));
	assert_true(span_is(rest, "cut"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans_are_ordered_by_bytes_and_then_by_length),
		cmocka_unit_test(test_words_are_taken_with_the_blanks_before_them),
		cmocka_unit_test(test_a_text_is_taken_only_with_its_end),
		cmocka_unit_test(test_literal_and_text_leave_the_terminator_out),
		cmocka_unit_test(test_spans_are_equal_by_length_and_bytes),
		cmocka_unit_test(test_empty_spans_are_equal_wherever_they_point),
		cmocka_unit_test(test_prefix_is_found_only_at_the_front_and_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
