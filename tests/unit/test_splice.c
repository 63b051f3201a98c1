/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "acp/splice.h"
#include "base/attr.h"
#include "base/buf.h"

static const char message[] = "0123456789";
enum { MESSAGE_LEN = sizeof(message) - 1 };

static int set_up(void **state)
{
	struct splice *splice = mem_alloc_zero(sizeof(*splice));
	splice_init(splice);
	*state = splice;
	return 0;
}

static int tear_down(void **state)
{
	splice_finish(*state);
	free(*state);
	return 0;
}

static void add(struct splice *splice, size_t start, size_t end, const char *with)
{
	assert_true(splice_add(splice, start, end, span_of(with), NULL));
}

/* Seals, and expects the text from both ways of getting it. */
static void expect(struct splice *splice, const char *text)
{
	struct span original = {message, MESSAGE_LEN};
	struct error err;
	if (!splice_seal(splice, MESSAGE_LEN, &err)) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(splice_length(splice, MESSAGE_LEN), strlen(text));

	struct buf whole;
	buf_init(&whole, 1024);
	assert_true(buf_append(&whole, SPAN_LITERAL("> "), NULL));
	assert_true(splice_append(splice, original, &whole, NULL));
	buf_consume(&whole, 2);
	assert_true(span_is(buf_span(&whole), text));

	size_t most = splice_piece_count(splice);
	struct iovec *pieces = mem_alloc(most * sizeof(pieces[0]));
	size_t count = splice_pieces(splice, original, pieces);
	assert_true(count <= most);
	buf_clear(&whole);
	for (size_t i = 0; i < count; i++) {
		assert_true(pieces[i].iov_len > 0);
		struct span piece = {pieces[i].iov_base, pieces[i].iov_len};
		assert_true(buf_append(&whole, piece, NULL));
	}
	assert_true(span_is(buf_span(&whole), text));
	free(pieces);
	buf_finish(&whole);
}

static void expect_refused(struct splice *splice, size_t message_len)
{
	struct error err = {0};
	bool ok = splice_seal(splice, message_len, &err);
	assert_false(ok);
	assert_int_equal(err.code, ERROR_PROTOCOL);
}

static void test_without_edits_the_message_is_one_piece(void **state)
{
	expect(*state, "0123456789");
	struct iovec piece;
	assert_int_equal(splice_pieces(*state, (struct span){message, MESSAGE_LEN}, &piece), 1);
	assert_ptr_equal(piece.iov_base, message);
	assert_int_equal(splice_pieces(*state, (struct span){0}, &piece), 0);
}

static void test_bytes_are_replaced_inserted_and_deleted(void **state)
{
	add(*state, 1, 3, "ab");
	add(*state, 4, 5, "");
	add(*state, 6, 6, "longer");
	expect(*state, "0ab35longer6789");
}

static void test_edits_may_come_in_any_order(void **state)
{
	add(*state, 8, 9, "C");
	add(*state, 0, 1, "A");
	add(*state, 4, 6, "B");
	expect(*state, "A123B67C9");
}

static void test_both_ends_can_be_edited(void **state)
{
	add(*state, 10, 10, "]");
	add(*state, 0, 0, "[");
	expect(*state, "[0123456789]");
}

static void test_the_whole_message_can_be_replaced_or_deleted(void **state)
{
	add(*state, 0, 10, "x");
	expect(*state, "x");
	splice_clear(*state);
	add(*state, 0, 10, "");
	expect(*state, "");
}

static void test_insertions_at_one_place_keep_their_order(void **state)
{
	add(*state, 5, 5, "a");
	add(*state, 7, 7, "z");
	add(*state, 5, 5, "");
	add(*state, 5, 5, "b");
	add(*state, 2, 2, "-");
	add(*state, 5, 5, "c");
	expect(*state, "01-234abc56z789");
}

static void test_edits_may_touch(void **state)
{
	add(*state, 3, 5, "B");
	add(*state, 5, 5, "i");
	add(*state, 5, 7, "C");
	add(*state, 3, 3, "h");
	add(*state, 1, 3, "A");
	add(*state, 7, 7, "j");
	expect(*state, "0AhBiCj789");
}

static void test_overlapping_edits_are_refused(void **state)
{
	static const size_t overlaps[][4] = {
		{1, 4, 3, 5},
		{1, 4, 1, 4},
		{1, 4, 1, 5},
		{1, 4, 2, 3},
		{1, 4, 2, 2},
		{0, 10, 9, 10},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(overlaps); i++) {
		const size_t *at = overlaps[i];
		splice_clear(*state);
		add(*state, at[0], at[1], "a");
		add(*state, at[2], at[3], "b");
		expect_refused(*state, MESSAGE_LEN);
		splice_clear(*state);
		add(*state, at[2], at[3], "b");
		add(*state, at[0], at[1], "a");
		expect_refused(*state, MESSAGE_LEN);
	}
}

static void test_edits_outside_of_the_message_are_refused(void **state)
{
	add(*state, 9, 11, "");
	expect_refused(*state, MESSAGE_LEN);
	splice_clear(*state);
	add(*state, 11, 11, "");
	expect_refused(*state, MESSAGE_LEN);
	splice_clear(*state);
	add(*state, 4, 3, "");
	expect_refused(*state, MESSAGE_LEN);
	splice_clear(*state);
	add(*state, 0, SIZE_MAX, "");
	expect_refused(*state, MESSAGE_LEN);
}

static void test_the_replacements_have_a_maximum(void **state)
{
	struct splice *splice = *state;
	char *text = mem_alloc(SPLICE_BYTES_MAX);
	memset(text, 'x', SPLICE_BYTES_MAX);
	add(splice, 0, 0, "y");
	struct error err = {0};
	bool ok = splice_add(splice, 1, 1, (struct span){text, SPLICE_BYTES_MAX}, &err);
	assert_false(ok);
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_int_equal(splice->count, 1);
	assert_true(splice_add(splice, 1, 1, (struct span){text, SPLICE_BYTES_MAX - 1}, &err));
	assert_true(splice_seal(splice, MESSAGE_LEN, &err));
	assert_int_equal(splice_length(splice, MESSAGE_LEN), SPLICE_BYTES_MAX + MESSAGE_LEN);
	free(text);
}

static void test_a_full_buffer_refuses_the_spliced_message(void **state)
{
	add(*state, 5, 5, "x");
	assert_true(splice_seal(*state, MESSAGE_LEN, NULL));
	struct buf out;
	buf_init(&out, MESSAGE_LEN);
	struct error err = {0};
	bool ok = splice_append(*state, (struct span){message, MESSAGE_LEN}, &out, &err);
	assert_false(ok);
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_int_equal(out.len, 0);
	buf_finish(&out);
}

/* All edits there may be, added from both ends inwards, none in its place. */
static void test_the_most_edits_are_sorted_and_one_more_is_refused(void **state)
{
	struct splice *splice = *state;
	enum { COUNT = SPLICE_EDITS_MAX };
	char *original = mem_alloc(COUNT);
	memset(original, '.', COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		size_t at = i % 2 ? COUNT - 1 - i / 2 : i / 2;
		char with[2] = {(char)('a' + at % 26), '\0'};
		add(splice, at, at + 1, with);
	}
	struct error err = {0};
	bool ok = splice_add(splice, 0, 0, SPAN_LITERAL("x"), &err);
	assert_false(ok);
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_true(splice_seal(splice, COUNT, NULL));
	struct buf out;
	buf_init(&out, COUNT);
	assert_true(splice_append(splice, (struct span){original, COUNT}, &out, NULL));
	assert_int_equal(out.len, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(buf_span(&out).data[i], 'a' + i % 26);
	}
	splice_clear(splice);
	assert_true(splice->capacity < 4096);
	add(splice, 0, 1, "a");
	expect(splice, "a123456789");
	buf_finish(&out);
	free(original);
}

static void test_a_member_is_inserted_first_with_a_comma_where_one_is_needed(void **state)
{
	static const struct {
		const char *object;
		const char *expected;
	} samples[] = {
		{"{\"a\":1}", "[{\"m\":[2],\"a\":1}]"},
		{"{ \"a\":1}", "[{\"m\":[2], \"a\":1}]"},
		{"{}", "[{\"m\":[2]}]"},
		{"{ \t\r}", "[{\"m\":[2] \t\r}]"},
	};
	struct splice *splice = *state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		char text[32];
		struct buf out;
		int len = snprintf(text, sizeof(text), "[%s]", samples[i].object);
		struct span object = {text + 1, (size_t)len - 2};
		struct span whole = {text, (size_t)len};
		splice_clear(splice);
		buf_init(&out, sizeof(text) * 2);
		assert_true(splice_insert_member(
			splice, whole, object, "m", SPAN_LITERAL("[2]"), NULL));
		assert_true(splice_seal(splice, whole.len, NULL));
		assert_true(splice_append(splice, whole, &out, NULL));
		assert_true(span_is(buf_span(&out), samples[i].expected));
		buf_finish(&out);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_without_edits_the_message_is_one_piece),
		TEST(test_bytes_are_replaced_inserted_and_deleted),
		TEST(test_edits_may_come_in_any_order),
		TEST(test_both_ends_can_be_edited),
		TEST(test_the_whole_message_can_be_replaced_or_deleted),
		TEST(test_insertions_at_one_place_keep_their_order),
		TEST(test_edits_may_touch),
		TEST(test_overlapping_edits_are_refused),
		TEST(test_edits_outside_of_the_message_are_refused),
		TEST(test_the_replacements_have_a_maximum),
		TEST(test_a_full_buffer_refuses_the_spliced_message),
		TEST(test_a_member_is_inserted_first_with_a_comma_where_one_is_needed),
		TEST(test_the_most_edits_are_sorted_and_one_more_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
