/* SPDX-License-Identifier: MIT */
#include "broker/desk/parcel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "acp/message.h"

enum { MOVED = 32 * 1024, LARGE = 3 * 1024 * 1024 };

static struct json_places *places;
static struct frame_reader *reader;

static int set_up(void **state)
{
	places = places_create();
	reader = frame_reader_create(places, (size_t)2 * LARGE);
	return 0;
}

static int tear_down(void **state)
{
	frame_reader_destroy(reader);
	json_places_destroy(places);
	return 0;
}

static const char begin[] =
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"path\":\"";
static const char end[] = "\"}}";

/* A request of `len` bytes. */
static struct buf request(size_t len)
{
	struct buf text;
	buf_init(&text, SIZE_MAX / 2);
	char *to = buf_reserve(&text, len, NULL);
	memset(to, 'x', len);
	memcpy(to, begin, sizeof(begin) - 1);
	memcpy(to + len - (sizeof(end) - 1), end, sizeof(end) - 1);
	buf_commit(&text, len);
	return text;
}

/* Feeds bytes as reads would; returns the first frame. */
static struct frame feed(struct span bytes)
{
	struct frame frame = {.bytes = {NULL, 0}};
	bool is_whole = false;
	while (bytes.len > 0) {
		size_t room;
		char *space = frame_reader_space(reader, &room);
		size_t more = room < bytes.len ? room : bytes.len;
		memcpy(space, bytes.data, more);
		frame_reader_fed(reader, more);
		bytes = (struct span){bytes.data + more, bytes.len - more};
		is_whole = frame_reader_next(reader, &frame);
	}
	assert_true(is_whole);
	return frame;
}

static struct frame take_frame(size_t len, struct buf *out_text)
{
	*out_text = request(len);
	assert_true(buf_append(out_text, SPAN_LITERAL("\n"), NULL));
	return feed(buf_span(out_text));
}

static void assert_opens(struct parcel *parcel, struct span text)
{
	struct message message;
	struct error err;
	struct frame_reader *from = NULL;
	const struct frame *frame = parcel_open(parcel, &from);
	assert_non_null(from);
	assert_int_equal(frame->kind, FRAME_MESSAGE);
	assert_true(span_equals(frame->bytes, text));
	assert_true(message_read(&message, frame, &err));
	assert_string_equal(message.method, "m");
	assert_true(span_is(message.id, "7"));
	assert_non_null(message_hit(&message, PLACE_PATH));
}

static void test_it_gives_the_message_again_after_its_bytes_are_gone(void **state)
{
	static const size_t sizes[] = {100, MOVED - 1, MOVED, MOVED + 1, LARGE};
	for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
		struct buf text;
		struct frame frame = take_frame(sizes[i], &text);
		struct parcel *parcel = parcel_create(reader, &frame, places);
		struct frame later = feed(SPAN_LITERAL("{\"later\":1}\n"));
		assert_true(span_is(later.bytes, "{\"later\":1}"));
		assert_int_equal(parcel_size(parcel), PARCEL_OVERHEAD + sizes[i]);
		assert_opens(parcel, (struct span){buf_span(&text).data, sizes[i]});
		parcel_destroy(parcel);
		buf_finish(&text);
	}
}

static void test_the_lines_behind_a_moved_message_stay(void **state)
{
	struct buf text = request(LARGE);
	struct frame frame;
	assert_true(buf_append(&text, SPAN_LITERAL("\n{\"next\":1}\n"), NULL));
	struct span bytes = buf_span(&text);
	bool is_whole = false;
	while (bytes.len > 0) {
		size_t room;
		char *space = frame_reader_space(reader, &room);
		size_t more = room < bytes.len ? room : bytes.len;
		memcpy(space, bytes.data, more);
		frame_reader_fed(reader, more);
		bytes = (struct span){bytes.data + more, bytes.len - more};
		is_whole = frame_reader_next(reader, &frame);
	}
	assert_true(is_whole);
	struct parcel *parcel = parcel_create(reader, &frame, places);
	assert_true(frame_reader_next(reader, &frame));
	assert_true(span_is(frame.bytes, "{\"next\":1}"));
	assert_opens(parcel, (struct span){buf_span(&text).data, LARGE});
	parcel_destroy(parcel);
	buf_finish(&text);
}

static void test_a_large_message_is_moved(void **state)
{
	struct buf text;
	struct frame frame = take_frame(LARGE, &text);
	char *bytes = (char *)frame.bytes.data;
	struct parcel *parcel = parcel_create(reader, &frame, places);
	bytes[LARGE / 2] = '!'; // shows whether it is the same memory
	struct frame_reader *from;
	assert_int_equal(parcel_open(parcel, &from)->bytes.data[LARGE / 2], '!');
	parcel_destroy(parcel);
	buf_finish(&text);
}

static void test_the_message_can_be_taken_from_its_reader(void **state)
{
	struct buf text;
	struct buf taken;
	struct frame_reader *from;
	struct frame frame = take_frame(LARGE, &text);
	struct parcel *parcel = parcel_create(reader, &frame, places);
	parcel_open(parcel, &from);
	buf_init(&taken, SIZE_MAX / 2);
	frame_reader_take(from, &taken);
	parcel_destroy(parcel);
	assert_int_equal(taken.len, LARGE);
	assert_memory_equal(buf_span(&taken).data, buf_span(&text).data, LARGE);
	buf_finish(&taken);
	buf_finish(&text);
}

static void test_bytes_of_our_own_become_a_message(void **state)
{
	struct buf text = request(5000);
	struct buf copy = request(5000);
	struct parcel *parcel = parcel_of(&text, places);
	assert_int_equal(text.len, 0); // taken
	assert_int_equal(parcel_size(parcel), PARCEL_OVERHEAD + 5000);
	assert_opens(parcel, buf_span(&copy));
	parcel_destroy(parcel);
	buf_finish(&copy);
}

static void test_it_may_be_thrown_away_unopened(void **state)
{
	struct buf text;
	struct frame frame = take_frame(LARGE, &text);
	parcel_destroy(parcel_create(reader, &frame, places));
	parcel_destroy(NULL);
	buf_finish(&text);
}

#define PARCEL_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PARCEL_TEST(test_it_gives_the_message_again_after_its_bytes_are_gone),
		PARCEL_TEST(test_the_lines_behind_a_moved_message_stay),
		PARCEL_TEST(test_a_large_message_is_moved),
		PARCEL_TEST(test_the_message_can_be_taken_from_its_reader),
		PARCEL_TEST(test_bytes_of_our_own_become_a_message),
		PARCEL_TEST(test_it_may_be_thrown_away_unopened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
