/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cmocka.h>

#include "acp/frames.h"
#include "base/json_check.h"
#include "base/json_doc.h"
#include "base/attr.h"
#include "base/buf.h"

/*
 * The memory on the heap while the largest message arrives, is checked, and is refused by the
 * random-access reader: the message itself and little more.
 */
enum { MIB = 1024 * 1024, MESSAGE_SIZE = 64 * MIB, BEYOND_MAX = 4 * MIB };

static const struct json_place table[] = {
	{0, "id", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{1, "params", JSON_PLACE_ONCE},
	{2, "params.update.locations[].path", 0},
};

/* A message that is made as it is read: a head, bodies as long as they fit, a tail. */
struct source {
	const char *head;
	const char *body;
	const char *tail;
	size_t at;
};

/* The bytes of the message from `at` on: a part of one of its three texts, or of the gap. */
static struct span source_piece(const struct source *source)
{
	struct span head = span_of(source->head);
	struct span body = span_of(source->body);
	struct span tail = span_of(source->tail);
	size_t bodies = MESSAGE_SIZE - head.len - tail.len;
	bodies -= bodies % body.len;
	struct span piece = SPAN_LITERAL(" ");
	size_t skip = 0;
	if (source->at < head.len) {
		piece = head;
		skip = source->at;
	} else if (source->at < head.len + bodies) {
		piece = body;
		skip = (source->at - head.len) % body.len;
	} else if (source->at >= MESSAGE_SIZE - tail.len) {
		piece = tail;
		skip = source->at - (MESSAGE_SIZE - tail.len);
	}
	return (struct span){piece.data + skip, piece.len - skip};
}

static size_t source_read(struct source *source, char *to, size_t room)
{
	size_t len = 0;
	while (len < room && source->at < MESSAGE_SIZE) {
		struct span piece = source_piece(source);
		size_t more = piece.len < room - len ? piece.len : room - len;
		memcpy(to + len, piece.data, more);
		len += more;
		source->at += more;
	}
	return len;
}

static size_t heap_in_use(void)
{
#ifdef __GLIBC__
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
#else
	return 0;
#endif
}

/* mallinfo2 does not count other allocators (of sanitizers, of musl). */
static bool heap_is_counted(void)
{
	size_t before = heap_in_use();
	char *probe = mem_alloc(MIB);
	bool is_counted = heap_in_use() >= before + MIB;
	free(probe);
	return is_counted;
}

static void expect_heap(size_t before, size_t held)
{
	size_t now = heap_in_use();
	if (heap_is_counted() && now > before + held + BEYOND_MAX) {
		fail_msg("%zu bytes beyond %zu", now - before - held, held);
	}
}

/* Reads the whole message; checks that the heap never holds more than `held` and a little. */
static struct frame read_message(
	struct frame_reader *reader, struct source source, size_t before, size_t held)
{
	struct frame frame;
	while (source.at < MESSAGE_SIZE) {
		size_t room = 0;
		char *space = frame_reader_space(reader, &room);
		frame_reader_fed(reader, source_read(&source, space, room));
		assert_false(frame_reader_next(reader, &frame));
		expect_heap(before, held);
	}
	size_t room = 0;
	*frame_reader_space(reader, &room) = '\n';
	frame_reader_fed(reader, 1);
	assert_true(frame_reader_next(reader, &frame));
	assert_int_equal(frame.length, MESSAGE_SIZE);
	expect_heap(before, held);
	return frame;
}

static void run(struct source source, enum error_code doc_verdict)
{
	size_t before = heap_in_use();
	struct json_places *places = json_places_create(table, ARRAY_LENGTH(table));
	struct frame_reader *reader = frame_reader_create(places, MESSAGE_SIZE);
	struct frame frame = read_message(reader, source, before, MESSAGE_SIZE);
	if (frame.kind != FRAME_MESSAGE) {
		fail_msg("%s", frame.error.text);
	}
	struct buf taken;
	buf_init(&taken, MESSAGE_SIZE);
	frame_reader_take(reader, &taken);
	expect_heap(before, MESSAGE_SIZE);

	struct error err = {0};
	struct json_doc *doc = json_doc_parse_unchecked(buf_span(&taken), &err);
	assert_int_equal(err.code, doc_verdict);
	expect_heap(before, MESSAGE_SIZE);
	json_doc_destroy(doc);
	buf_finish(&taken);
	expect_heap(before, 0);
	assert_false(frame_reader_next(reader, &frame));
	frame_reader_destroy(reader);

	/* A message over the maximum is not held at all. */
	reader = frame_reader_create(places, (size_t)8 * MIB);
	frame = read_message(reader, source, before, (size_t)8 * MIB);
	assert_int_equal(frame.kind, FRAME_TOO_LONG);
	expect_heap(before, 0);
	frame_reader_destroy(reader);
	json_places_destroy(places);
}

/* The text, repeated. */
static char *repeated(const char *text, size_t times)
{
	struct buf all;
	buf_init(&all, MIB);
	for (size_t i = 0; i < times; i++) {
		assert_true(buf_append(&all, span_of(text), NULL));
	}
	char *copy = mem_strndup(buf_span(&all));
	buf_finish(&all);
	return copy;
}

static void test_many_zeros(void **state)
{
	char *body = repeated(",0", 1024);
	run((struct source){"[0", body, "]", 0}, ERROR_LIMIT);
	free(body);
}

static void test_one_string(void **state)
{
	char *body = repeated("x", 1024);
	run((struct source){"{\"params\":{\"text\":\"", body, "\"}}", 0}, ERROR_NONE);
	free(body);
}

static void test_a_million_members(void **state)
{
	const char *body = ",\"a member of 64 bytes\":\"its value takes what is left over\"     ";
	assert_int_equal(strlen(body), 64);
	run((struct source){"{\"id\":1", body, "}", 0}, ERROR_LIMIT);
}

static void test_many_levels(void **state)
{
	char *open = repeated("[{\"a\":", JSON_DEPTH_MAX / 2 - 1);
	char *close = repeated("}]", JSON_DEPTH_MAX / 2 - 1);
	struct buf body;
	buf_init(&body, MIB);
	assert_true(buf_append_format(&body, NULL, ",%s1%s", open, close));
	char *text = mem_strndup(buf_span(&body));
	run((struct source){"[0", text, "]", 0}, ERROR_LIMIT);
	free(text);
	buf_finish(&body);
	free(close);
	free(open);
}

static void test_as_many_known_places_as_there_may_be(void **state)
{
	char *text = repeated("x", MESSAGE_SIZE / JSON_HITS_MAX);
	struct buf body;
	buf_init(&body, MIB);
	assert_true(buf_append_format(&body, NULL, ",{\"path\":\"%s\"}", text));
	char *element = mem_strndup(buf_span(&body));
	run((struct source){"{\"params\":{\"update\":{\"locations\":[0", element, "]}}}", 0},
		ERROR_LIMIT);
	free(element);
	buf_finish(&body);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_zeros),
		cmocka_unit_test(test_one_string),
		cmocka_unit_test(test_a_million_members),
		cmocka_unit_test(test_many_levels),
		cmocka_unit_test(test_as_many_known_places_as_there_may_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
