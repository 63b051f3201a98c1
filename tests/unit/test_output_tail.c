/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/output_tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(struct output_tail *tail, const char *text)
{
	output_tail_add(tail, span_of(text));
}

/* The newest text of a tail; valid until the next call. */
static const char *text_of(
	const struct output_tail *tail, size_t max, bool has_ended, bool *out_is_cut)
{
	static char text[4096];
	struct buf out;
	buf_init(&out, sizeof(text) - 1);
	*out_is_cut = output_tail_text(tail, max, has_ended, &out);
	memcpy(text, out.len > 0 ? buf_span(&out).data : "", out.len);
	text[out.len] = '\0';
	buf_finish(&out);
	return text;
}

static void expect_text(
	const struct output_tail *tail, size_t max, const char *text, bool expect_cut)
{
	bool is_cut;
	assert_string_equal(text_of(tail, max, true, &is_cut), text);
	assert_int_equal(is_cut, expect_cut);
}

/* The text after *position; valid until the next call. */
static const char *next_of(
	const struct output_tail *tail, uint64_t *position, size_t max, bool has_ended)
{
	static char text[4096];
	struct buf out;
	buf_init(&out, sizeof(text) - 1);
	assert_int_equal(output_tail_next(tail, position, max, has_ended, &out), 0);
	memcpy(text, out.len > 0 ? buf_span(&out).data : "", out.len);
	text[out.len] = '\0';
	buf_finish(&out);
	return text;
}

static void test_everything_is_kept_below_the_limit(void **state)
{
	struct output_tail tail;
	output_tail_init(&tail, 10);
	expect_text(&tail, 10, "", false);
	add(&tail, "01234");
	add(&tail, "56789");
	expect_text(&tail, 10, "0123456789", false);
	assert_int_equal(tail.total, 10);
	output_tail_finish(&tail);
}

static void test_the_end_is_kept_above_the_limit(void **state)
{
	struct output_tail tail;
	output_tail_init(&tail, 10);
	add(&tail, "0123456789");
	add(&tail, "a");
	expect_text(&tail, 10, "123456789a", true);
	add(&tail, "bcdef");
	expect_text(&tail, 10, "6789abcdef", true);
	add(&tail, "a piece longer than the limit");
	expect_text(&tail, 10, " the limit", true);
	assert_int_equal(tail.total, 45);
	output_tail_finish(&tail);
}

static void test_less_than_what_is_kept_can_be_asked_for(void **state)
{
	struct output_tail tail;
	output_tail_init(&tail, 100);
	add(&tail, "0123456789");
	expect_text(&tail, 4, "6789", true);
	expect_text(&tail, 0, "", true);
	output_tail_finish(&tail);
}

static void test_a_limit_of_nothing_keeps_nothing(void **state)
{
	struct output_tail tail;
	output_tail_init(&tail, 0);
	expect_text(&tail, 0, "", false);
	add(&tail, "gone");
	expect_text(&tail, 0, "", true);
	output_tail_finish(&tail);
}

static void test_it_begins_with_a_whole_character(void **state)
{
	struct output_tail tail;
	output_tail_init(&tail, 5);
	add(&tail, "x\xe2\x82\xac\xe2\x82\xac"); // x€€
	expect_text(&tail, 5, "\xe2\x82\xac", true);
	expect_text(&tail, 4, "\xe2\x82\xac", true);
	expect_text(&tail, 3, "\xe2\x82\xac", true);
	expect_text(&tail, 2, "", true);
	output_tail_finish(&tail);
}

static void test_a_character_that_is_not_complete_waits_for_its_rest(void **state)
{
	struct output_tail tail;
	bool is_cut;
	output_tail_init(&tail, 100);
	add(&tail, "a\xf0\x9f\x98");
	assert_string_equal(text_of(&tail, 100, false, &is_cut), "a");
	assert_false(is_cut);
	assert_string_equal(
		text_of(&tail, 100, true, &is_cut), "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	add(&tail, "\x80");
	assert_string_equal(text_of(&tail, 100, false, &is_cut), "a\xf0\x9f\x98\x80");
	output_tail_finish(&tail);
}

static void test_bytes_that_are_no_text_are_replaced_within_the_limit(void **state)
{
	struct output_tail tail;
	output_tail_init(&tail, 8);
	add(&tail, "a\xff\x80z");
	expect_text(&tail, 100, "a\xef\xbf\xbd\xef\xbf\xbdz", false);
	expect_text(&tail, 4, "\xef\xbf\xbdz", true); // three bytes a replacement
	add(&tail, "\xff\xff\xff\xff");
	expect_text(&tail, 8, "\xef\xbf\xbd\xef\xbf\xbd", true);
	output_tail_finish(&tail);
}

static void test_what_is_new_is_read_piece_by_piece(void **state)
{
	struct output_tail tail;
	uint64_t position = 0;
	output_tail_init(&tail, 100);
	assert_string_equal(next_of(&tail, &position, 100, false), "");
	add(&tail, "ab\xc3");
	assert_string_equal(next_of(&tail, &position, 100, false), "ab");
	assert_int_equal(position, 2);
	assert_string_equal(next_of(&tail, &position, 100, false), "");
	add(&tail, "\xa4"
		   "cdef");
	assert_string_equal(next_of(&tail, &position, 3, false), "\xc3\xa4"
								 "c");
	assert_string_equal(next_of(&tail, &position, 100, false), "def");
	add(&tail, "\xc3");
	assert_string_equal(next_of(&tail, &position, 100, true), "\xef\xbf\xbd");
	assert_string_equal(next_of(&tail, &position, 100, true), "");
	output_tail_finish(&tail);
}

static void test_what_was_missed_is_counted(void **state)
{
	struct output_tail tail;
	struct buf out;
	uint64_t position = 2;
	output_tail_init(&tail, 4);
	buf_init(&out, 100);
	add(&tail, "01234\xc3\xa4"
		   "6789");
	assert_int_equal(output_tail_next(&tail, &position, 100, false, &out), 5);
	assert_true(span_is(buf_span(&out), "6789"));
	assert_int_equal(position, 11);
	buf_finish(&out);
	output_tail_finish(&tail);
}

static void test_dropped_it_only_counts(void **state)
{
	struct output_tail tail;
	output_tail_init(&tail, 100);
	add(&tail, "0123");
	output_tail_drop(&tail);
	add(&tail, "45");
	assert_int_equal(tail.total, 6);
	assert_int_equal(tail.capacity, 0);
	expect_text(&tail, 100, "", true);
	output_tail_finish(&tail);
}

static void test_memory_grows_with_what_is_there_up_to_the_limit(void **state)
{
	struct output_tail tail;
	char *piece = mem_alloc_zero(100000);
	output_tail_init(&tail, 1000000);
	assert_int_equal(tail.capacity, 0);
	output_tail_add(&tail, (struct span){piece, 10});
	assert_true(tail.capacity <= 4096);
	for (int i = 0; i < 100; i++) {
		output_tail_add(&tail, (struct span){piece, 100000});
	}
	assert_int_equal(tail.capacity, 1000000);
	free(piece);
	output_tail_finish(&tail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_is_kept_below_the_limit),
		cmocka_unit_test(test_the_end_is_kept_above_the_limit),
		cmocka_unit_test(test_less_than_what_is_kept_can_be_asked_for),
		cmocka_unit_test(test_a_limit_of_nothing_keeps_nothing),
		cmocka_unit_test(test_it_begins_with_a_whole_character),
		cmocka_unit_test(test_a_character_that_is_not_complete_waits_for_its_rest),
		cmocka_unit_test(test_bytes_that_are_no_text_are_replaced_within_the_limit),
		cmocka_unit_test(test_what_is_new_is_read_piece_by_piece),
		cmocka_unit_test(test_what_was_missed_is_counted),
		cmocka_unit_test(test_dropped_it_only_counts),
		cmocka_unit_test(test_memory_grows_with_what_is_there_up_to_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
