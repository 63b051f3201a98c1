/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "acp/frames.h"
#include "base/attr.h"
#include "base/buf.h"
#include "tests/support/facts.h"

enum { ID, METHOD, CWD };

static const struct json_place table[] = {
	{ID, "id", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{METHOD, "method", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{CWD, "params.cwd", 0},
};

enum { MAX_MESSAGE = 64 };

static struct json_places *places;

static int set_up(void **state)
{
	places = json_places_create(table, ARRAY_LENGTH(table));
	*state = frame_reader_create(places, MAX_MESSAGE);
	return 0;
}

static int tear_down(void **state)
{
	frame_reader_destroy(*state);
	json_places_destroy(places);
	return 0;
}

/* Gives the reader bytes as one read would. */
static void feed(struct frame_reader *reader, struct span bytes)
{
	while (bytes.len > 0) {
		size_t room = 0;
		char *space = frame_reader_space(reader, &room);
		assert_non_null(space);
		assert_true(room > 0);
		size_t len = bytes.len < room ? bytes.len : room;
		memcpy(space, bytes.data, len);
		frame_reader_fed(reader, len);
		bytes = (struct span){bytes.data + len, bytes.len - len};
	}
}

static void expect_bytes(struct frame_reader *reader, enum frame_kind kind, const char *text)
{
	struct frame frame;
	assert_true(frame_reader_next(reader, &frame));
	assert_int_equal(frame.kind, kind);
	if (!span_is(frame.bytes, text)) {
		fail_msg("%.*s is not %s", (int)frame.bytes.len, frame.bytes.data, text);
	}
	assert_int_equal(frame.error.code == ERROR_NONE, kind == FRAME_MESSAGE);
}

static void expect_nothing(struct frame_reader *reader)
{
	struct frame frame;
	assert_false(frame_reader_next(reader, &frame));
	assert_int_equal(frame_reader_pending(reader), 0);
}

static void test_each_line_is_a_message(void **state)
{
	feed(*state, SPAN_LITERAL("{\"id\":1}\n[2]\n \"three\" \n"));
	expect_bytes(*state, FRAME_MESSAGE, "{\"id\":1}");
	assert_int_equal(frame_reader_pending(*state), 14);
	expect_bytes(*state, FRAME_MESSAGE, "[2]");
	expect_bytes(*state, FRAME_MESSAGE, " \"three\" ");
	expect_nothing(*state);
}

static void test_crlf_is_accepted_and_blank_lines_are_skipped(void **state)
{
	feed(*state, SPAN_LITERAL("\n\r\n \t\r\n1\r\n\n\r\r\n2\n\n"));
	expect_bytes(*state, FRAME_MESSAGE, "1");
	expect_bytes(*state, FRAME_MESSAGE, "2");
	expect_nothing(*state);
}

static void test_a_line_may_come_byte_by_byte(void **state)
{
	static const char text[] = "{\"id\":\"\xc3\xa9\"}\r\n{}";
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		feed(*state, (struct span){text + i, 1});
		if (text[i] == '\n') {
			expect_bytes(*state, FRAME_MESSAGE, "{\"id\":\"\xc3\xa9\"}");
		}
		struct frame frame;
		assert_false(frame_reader_next(*state, &frame));
	}
	assert_int_equal(frame_reader_pending(*state), 2);
}

static void test_what_is_left_at_the_end_is_one_more_line(void **state)
{
	struct frame frame;
	feed(*state, SPAN_LITERAL("1\n{}\r"));
	expect_bytes(*state, FRAME_MESSAGE, "1");
	assert_false(frame_reader_next(*state, &frame));
	assert_true(frame_reader_end(*state, &frame));
	assert_int_equal(frame.kind, FRAME_MESSAGE);
	assert_true(span_is(frame.bytes, "{}"));
	assert_false(frame_reader_next(*state, &frame));
	assert_false(frame_reader_end(*state, &frame));
}

static void test_a_cut_line_at_the_end_is_invalid(void **state)
{
	struct frame frame;
	feed(*state, SPAN_LITERAL("{\"id\":3,"));
	assert_false(frame_reader_next(*state, &frame));
	assert_true(frame_reader_end(*state, &frame));
	assert_int_equal(frame.kind, FRAME_INVALID);
	assert_true(span_is(frame.bytes, "{\"id\":3,"));
	assert_names(frame.error.text, "byte 8 | not complete");
	struct span kept;
	assert_true(json_check_kept(frame.check, ID, &kept));
	assert_true(span_is(kept, "3"));
	assert_false(frame_reader_end(*state, &frame));
}

static void test_there_is_no_line_at_the_end_of_nothing_or_space(void **state)
{
	struct frame frame;
	assert_false(frame_reader_end(*state, &frame));
	feed(*state, SPAN_LITERAL(" \t\r"));
	assert_false(frame_reader_next(*state, &frame));
	assert_false(frame_reader_end(*state, &frame));
}

static void test_hits_count_from_the_first_byte_of_their_line(void **state)
{
	struct frame frame;
	feed(*state, SPAN_LITERAL("{}\n {\"params\":{\"cwd\":\"/x\"}}\n"));
	expect_bytes(*state, FRAME_MESSAGE, "{}");
	assert_true(frame_reader_next(*state, &frame));
	const struct json_hit *hit = json_check_find(frame.check, CWD);
	assert_non_null(hit);
	assert_true(span_is(
		(struct span){frame.bytes.data + hit->start, hit->end - hit->start}, "\"/x\""));
}

static void test_a_bad_line_costs_only_itself(void **state)
{
	struct frame frame;
	feed(*state,
		SPAN_LITERAL("Warning: banner\n{\"id\":1,}\n{\"id\":2}\n{\"id\":1,\"id\":2}\n1\n"));
	assert_true(frame_reader_next(*state, &frame));
	assert_int_equal(frame.kind, FRAME_INVALID);
	assert_int_equal(frame.error.code, ERROR_PROTOCOL);
	assert_string_equal(frame.error.text, "byte 0: a value was expected");
	assert_true(span_is(frame.bytes, "Warning: banner"));
	assert_int_equal(frame.length, 15);
	expect_bytes(*state, FRAME_INVALID, "{\"id\":1,}");
	expect_bytes(*state, FRAME_MESSAGE, "{\"id\":2}");
	expect_bytes(*state, FRAME_INVALID, "{\"id\":1,\"id\":2}");
	expect_bytes(*state, FRAME_MESSAGE, "1");
	expect_nothing(*state);
}

static void test_a_long_bad_line_shows_its_beginning_only(void **state)
{
	char text[FRAME_BEGINNING_MAX * 2];
	memset(text, 'x', sizeof(text));
	struct frame_reader *reader = frame_reader_create(places, 4096);
	for (size_t piece = 1; piece <= sizeof(text); piece += 13) {
		for (size_t at = 0; at < sizeof(text); at += piece) {
			size_t len = sizeof(text) - at < piece ? sizeof(text) - at : piece;
			struct frame frame;
			feed(reader, (struct span){text + at, len});
			assert_false(frame_reader_next(reader, &frame));
			assert_int_equal(frame_reader_pending(reader), 0);
		}
		feed(reader, SPAN_LITERAL("\r\n7\n"));
		struct frame frame;
		assert_true(frame_reader_next(reader, &frame));
		assert_int_equal(frame.kind, FRAME_INVALID);
		assert_int_equal(frame.length, sizeof(text));
		assert_int_equal(frame.bytes.len, FRAME_BEGINNING_MAX);
		assert_memory_equal(frame.bytes.data, text, FRAME_BEGINNING_MAX);
		expect_bytes(reader, FRAME_MESSAGE, "7");
	}
	frame_reader_destroy(reader);
}

/* {"params":"x...","id":12} of exactly that length. */
static struct span message_of(char *to, size_t length)
{
	static const char head[] = "{\"params\":\"";
	static const char tail[] = "\",\"id\":12}";
	assert_true(length >= sizeof(head) + sizeof(tail) - 2);
	memset(to, 'x', length);
	memcpy(to, head, sizeof(head) - 1);
	memcpy(to + length - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
	return (struct span){to, length};
}

static void test_the_maximum_is_met_to_the_byte(void **state)
{
	static const char *const line_ends[] = {"\n", "\r\n"};
	char text[MAX_MESSAGE + 8];
	for (size_t length = MAX_MESSAGE - 1; length <= MAX_MESSAGE + 2; length++) {
		for (size_t i = 0; i < 2 * ARRAY_LENGTH(line_ends); i++) {
			struct span message = message_of(text, length);
			struct frame frame;
			feed(*state, message);
			if (i >= ARRAY_LENGTH(line_ends)) {
				assert_false(frame_reader_next(*state, &frame));
			}
			feed(*state, span_of(line_ends[i % ARRAY_LENGTH(line_ends)]));
			assert_true(frame_reader_next(*state, &frame));
			bool fits = length <= MAX_MESSAGE;
			assert_int_equal(frame.kind, fits ? FRAME_MESSAGE : FRAME_TOO_LONG);
			assert_int_equal(frame.length, length);
			assert_true(span_equals(frame.bytes, message));
			expect_nothing(*state);
		}
	}
}

static void test_a_carriage_return_counts_where_no_newline_follows(void **state)
{
	char text[MAX_MESSAGE + 8];
	struct frame frame;
	feed(*state, message_of(text, MAX_MESSAGE));
	feed(*state, SPAN_LITERAL("\r"));
	assert_false(frame_reader_next(*state, &frame));
	feed(*state, SPAN_LITERAL(" \n"));
	assert_true(frame_reader_next(*state, &frame));
	assert_int_equal(frame.kind, FRAME_TOO_LONG);
	assert_int_equal(frame.length, MAX_MESSAGE + 2);
}

static void test_the_id_of_an_over_long_line_is_known_even_where_it_comes_last(void **state)
{
	enum { LENGTH = 10 * MAX_MESSAGE };
	char text[LENGTH];
	for (size_t piece = 1; piece <= LENGTH; piece++) {
		struct span left = message_of(text, LENGTH);
		struct frame frame;
		while (left.len > 0) {
			size_t len = left.len < piece ? left.len : piece;
			feed(*state, (struct span){left.data, len});
			assert_false(frame_reader_next(*state, &frame));
			assert_true(frame_reader_pending(*state) <= MAX_MESSAGE);
			left = (struct span){left.data + len, left.len - len};
		}
		feed(*state, SPAN_LITERAL("\n"));
		assert_true(frame_reader_next(*state, &frame));
		assert_int_equal(frame.kind, FRAME_TOO_LONG);
		assert_int_equal(frame.length, LENGTH);
		assert_int_equal(frame.error.code, ERROR_LIMIT);
		assert_string_equal(frame.error.text, "a message of 640 bytes; the maximum is 64");
		assert_int_equal(frame.bytes.len, FRAME_BEGINNING_MAX);
		assert_memory_equal(frame.bytes.data, text, FRAME_BEGINNING_MAX);
		struct span kept;
		assert_true(json_check_kept(frame.check, ID, &kept));
		assert_true(span_is(kept, "12"));
	}
}

static void test_an_over_long_line_that_is_no_json_is_too_long(void **state)
{
	char text[MAX_MESSAGE * 3];
	memset(text, '}', sizeof(text));
	feed(*state, (struct span){text, sizeof(text)});
	struct frame frame;
	assert_false(frame_reader_next(*state, &frame));
	feed(*state, SPAN_LITERAL("\n1\n"));
	assert_true(frame_reader_next(*state, &frame));
	assert_int_equal(frame.kind, FRAME_TOO_LONG);
	assert_int_equal(frame.length, sizeof(text));
	expect_bytes(*state, FRAME_MESSAGE, "1");
	feed(*state, (struct span){text, sizeof(text)});
	assert_false(frame_reader_next(*state, &frame));
	assert_true(frame_reader_end(*state, &frame));
	assert_int_equal(frame.kind, FRAME_TOO_LONG);
	assert_false(frame_reader_end(*state, &frame));
}

static void test_the_room_grows_with_the_message_and_goes_back(void **state)
{
	enum { LENGTH = 8 * 1024 * 1024 };
	struct frame_reader *reader = frame_reader_create(places, LENGTH);
	char *text = mem_alloc(LENGTH);
	struct span left = message_of(text, LENGTH);
	size_t reads = 0;
	struct frame frame;
	for (; left.len > 0; reads++) {
		size_t room = 0;
		char *space = frame_reader_space(reader, &room);
		size_t len = left.len < room ? left.len : room;
		memcpy(space, left.data, len);
		frame_reader_fed(reader, len);
		left = (struct span){left.data + len, left.len - len};
		assert_false(frame_reader_next(reader, &frame));
	}
	assert_true(reads < 24);
	feed(reader, SPAN_LITERAL("\n"));
	assert_true(frame_reader_next(reader, &frame));
	assert_int_equal(frame.bytes.len, LENGTH);
	assert_memory_equal(frame.bytes.data, text, LENGTH);
	assert_false(frame_reader_next(reader, &frame));
	size_t room = 0;
	frame_reader_space(reader, &room);
	assert_int_equal(room, FRAME_READ_SIZE);
	free(text);
	frame_reader_destroy(reader);
}

static void test_a_large_message_is_taken_and_later_lines_stay(void **state)
{
	enum { LENGTH = 200 * 1024 };
	struct frame_reader *reader = frame_reader_create(places, LENGTH);
	char *text = mem_alloc(LENGTH);
	feed(reader, message_of(text, LENGTH));
	feed(reader, SPAN_LITERAL("\r\n{\"id\":5}\n[6"));
	struct frame frame;
	assert_true(frame_reader_next(reader, &frame));
	struct buf taken;
	buf_init(&taken, LENGTH);
	frame_reader_take(reader, &taken);
	assert_true(span_equals(buf_span(&taken), (struct span){text, LENGTH}));
	assert_ptr_equal(buf_span(&taken).data, frame.bytes.data);
	struct span kept;
	assert_true(json_check_kept(frame.check, ID, &kept));
	assert_int_equal(frame_reader_pending(reader), 11);
	expect_bytes(reader, FRAME_MESSAGE, "{\"id\":5}");
	assert_false(frame_reader_next(reader, &frame));
	feed(reader, SPAN_LITERAL("]\n"));
	expect_bytes(reader, FRAME_MESSAGE, "[6]");
	expect_nothing(reader);
	assert_true(span_equals(buf_span(&taken), (struct span){text, LENGTH}));
	buf_finish(&taken);
	free(text);
	frame_reader_destroy(reader);
}

static void test_small_messages_are_taken_one_after_the_other(void **state)
{
	static const char *const texts[] = {"{\"id\":1}", "[2]", "3"};
	feed(*state, SPAN_LITERAL("{\"id\":1}\n[2]\n3\n"));
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct frame frame;
		assert_true(frame_reader_next(*state, &frame));
		struct buf taken;
		buf_init(&taken, MAX_MESSAGE);
		frame_reader_take(*state, &taken);
		assert_true(span_is(buf_span(&taken), texts[i]));
		buf_finish(&taken);
	}
	expect_nothing(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_line_is_a_message),
		TEST(test_crlf_is_accepted_and_blank_lines_are_skipped),
		TEST(test_a_line_may_come_byte_by_byte),
		TEST(test_what_is_left_at_the_end_is_one_more_line),
		TEST(test_a_cut_line_at_the_end_is_invalid),
		TEST(test_there_is_no_line_at_the_end_of_nothing_or_space),
		TEST(test_hits_count_from_the_first_byte_of_their_line),
		TEST(test_a_bad_line_costs_only_itself),
		TEST(test_a_long_bad_line_shows_its_beginning_only),
		TEST(test_the_maximum_is_met_to_the_byte),
		TEST(test_a_carriage_return_counts_where_no_newline_follows),
		TEST(test_the_id_of_an_over_long_line_is_known_even_where_it_comes_last),
		TEST(test_an_over_long_line_that_is_no_json_is_too_long),
		TEST(test_the_room_grows_with_the_message_and_goes_back),
		TEST(test_a_large_message_is_taken_and_later_lines_stay),
		TEST(test_small_messages_are_taken_one_after_the_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
