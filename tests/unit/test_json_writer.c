/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_check.h"
#include "base/json_writer.h"
#include "base/attr.h"

struct fixture {
	struct json_writer writer;
	struct buf out;
};

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	buf_init(&fixture->out, 8192);
	json_write_begin(&fixture->writer, &fixture->out);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	buf_finish(&fixture->out);
	free(fixture);
	return 0;
}

/* Checks that the writer has written exactly this, and that it is JSON. */
static void expect(struct fixture *fixture, const char *text)
{
	assert_true(json_write_end(&fixture->writer, NULL));
	if (!span_is(buf_span(&fixture->out), text)) {
		fail_msg("%.*s is not %s", (int)fixture->out.len, buf_span(&fixture->out).data,
			text);
	}
	struct json_check *check = json_check_create(NULL);
	assert_true(json_check_feed(check, buf_span(&fixture->out), NULL));
	assert_true(json_check_end(check, NULL));
	json_check_destroy(check);
	buf_clear(&fixture->out);
	json_write_begin(&fixture->writer, &fixture->out);
}

static void test_commas_stand_between_members_and_elements_only(void **state)
{
	struct fixture *fixture = *state;
	struct json_writer *writer = &fixture->writer;
	json_write_object(writer);
	json_write_key(writer, "a");
	json_write_array(writer);
	json_write_object(writer);
	json_write_object_end(writer);
	json_write_array(writer);
	json_write_array_end(writer);
	json_write_int(writer, 1);
	json_write_array_end(writer);
	json_write_key(writer, "b");
	json_write_object(writer);
	json_write_key(writer, "c");
	json_write_null(writer);
	json_write_key(writer, "d");
	json_write_bool(writer, true);
	json_write_object_end(writer);
	json_write_key(writer, "e");
	json_write_raw(writer, SPAN_LITERAL("[1, 2]"));
	json_write_object_end(writer);
	expect(fixture, "{\"a\":[{},[],1],\"b\":{\"c\":null,\"d\":true},\"e\":[1, 2]}");
}

static void test_every_kind_of_value_can_stand_alone(void **state)
{
	struct fixture *fixture = *state;
	json_write_null(&fixture->writer);
	expect(fixture, "null");
	json_write_bool(&fixture->writer, false);
	expect(fixture, "false");
	json_write_text(&fixture->writer, NULL);
	expect(fixture, "null");
	json_write_text(&fixture->writer, "x");
	expect(fixture, "\"x\"");
	json_write_string(&fixture->writer, (struct span){0});
	expect(fixture, "\"\"");
	json_write_array(&fixture->writer);
	json_write_array_end(&fixture->writer);
	expect(fixture, "[]");
}

static void test_the_smallest_and_largest_numbers_are_written(void **state)
{
	struct fixture *fixture = *state;
	json_write_int(&fixture->writer, 0);
	expect(fixture, "0");
	json_write_int(&fixture->writer, LLONG_MIN);
	expect(fixture, "-9223372036854775808");
	json_write_int(&fixture->writer, LLONG_MAX);
	expect(fixture, "9223372036854775807");
}

static void test_strings_and_keys_are_escaped(void **state)
{
	struct fixture *fixture = *state;
	struct json_writer *writer = &fixture->writer;
	json_write_string(writer, SPAN_LITERAL("a\"b\\c/d\b\f\n\r\t\x01\x1f\x7f\0e"));
	expect(fixture, "\"a\\\"b\\\\c/d\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000"
			"e\"");
	json_write_object(writer);
	json_write_key(writer, "\"\n");
	json_write_text(writer, "\"\n");
	json_write_object_end(writer);
	expect(fixture, "{\"\\\"\\n\":\"\\\"\\n\"}");
}

static void test_every_control_character_is_escaped(void **state)
{
	struct fixture *fixture = *state;
	char all[0x20];
	for (size_t i = 0; i < sizeof(all); i++) {
		all[i] = (char)i;
	}
	json_write_string(&fixture->writer, (struct span){all, sizeof(all)});
	struct span text = buf_span(&fixture->out);
	for (size_t i = 0; i < text.len; i++) {
		assert_true(text.data[i] >= 0x20);
	}
	struct json_check *check = json_check_create(NULL);
	assert_true(json_check_feed(check, text, NULL));
	assert_true(json_check_end(check, NULL));
	json_check_destroy(check);
}

/*
 * The writer looks at plain text in blocks of sixteen bytes; it must notice each byte at each
 * place.
 */
static void test_every_byte_is_seen_wherever_it_stands(void **state)
{
	struct fixture *fixture = *state;
	char text[43];
	char one[8];
	char expected[64];
	for (unsigned int byte = 0; byte < 0x100; byte++) {
		snprintf(one, sizeof(one), "%c", (int)byte);
		bool is_plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
		if (!is_plain) {
			json_write_string(&fixture->writer, (struct span){one, 1});
			struct span alone = buf_span(&fixture->out);
			snprintf(one, sizeof(one), "%.*s", (int)alone.len - 2, alone.data + 1);
			buf_clear(&fixture->out);
			json_write_begin(&fixture->writer, &fixture->out);
		}
		for (int at = 0; at < (int)sizeof(text); at++) {
			memset(text, 'a' + at % 26, sizeof(text));
			text[at] = (char)byte;
			int rest = (int)sizeof(text) - 1 - at;
			snprintf(expected, sizeof(expected), "\"%.*s%s%.*s\"", at, text, one, rest,
				text + at + 1);
			json_write_string(&fixture->writer, (struct span){text, sizeof(text)});
			expect(fixture, expected);
		}
	}
}

#define FFFD "\xef\xbf\xbd"

static void test_bytes_that_are_not_utf_8_are_replaced(void **state)
{
	static const struct {
		const char *text;
		const char *json;
	} cases[] = {
		{"d\xc3\xa9j\xc3\xa0 \xe4\xbd\xa0 \xf0\x9f\x98\x80",
			"\"d\xc3\xa9j\xc3\xa0 \xe4\xbd\xa0 \xf0\x9f\x98\x80\""},
		{"\xff", "\"" FFFD "\""},
		{"a\xc3", "\"a" FFFD "\""},
		{"\xc3(", "\"" FFFD "(\""},
		{"\xe4\xbd", "\"" FFFD FFFD "\""},
		{"\xed\xa0\x80", "\"" FFFD FFFD FFFD "\""},
		{"\xc0\xafx", "\"" FFFD FFFD "x\""},
		{"\xf0\x9f\x98\xf0\x9f\x98\x80", "\"" FFFD FFFD FFFD "\xf0\x9f\x98\x80\""},
	};
	struct fixture *fixture = *state;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		json_write_text(&fixture->writer, cases[i].text);
		expect(fixture, cases[i].json);
	}
}

static void test_what_is_in_the_buffer_stays_before_it(void **state)
{
	struct fixture *fixture = *state;
	assert_true(buf_append(&fixture->out, SPAN_LITERAL(" "), NULL));
	json_write_int(&fixture->writer, 1);
	expect(fixture, " 1");
}

static void test_the_deepest_level_can_be_written(void **state)
{
	struct fixture *fixture = *state;
	char text[2 * 3 * JSON_WRITER_DEPTH_MAX + 1] = "";
	size_t len = 0;
	for (int i = 0; i < JSON_WRITER_DEPTH_MAX; i++) {
		json_write_array(&fixture->writer);
		json_write_int(&fixture->writer, i % 10);
		text[len++] = '[';
		text[len++] = (char)('0' + i % 10);
		text[len++] = ',';
	}
	len--;
	for (int i = 0; i < JSON_WRITER_DEPTH_MAX; i++) {
		json_write_array_end(&fixture->writer);
		text[len++] = ']';
	}
	text[len] = '\0';
	expect(fixture, text);
}

static void write_something(struct json_writer *writer)
{
	json_write_object(writer);
	json_write_key(writer, "key");
	json_write_array(writer);
	json_write_text(writer, "a\n\xff");
	json_write_int(writer, 12);
	json_write_raw(writer, SPAN_LITERAL("{}"));
	json_write_bool(writer, true);
	json_write_array_end(writer);
	json_write_object_end(writer);
}

static void test_a_full_buffer_is_told_at_the_end_and_never_passed(void **state)
{
	struct fixture *fixture = *state;
	write_something(&fixture->writer);
	size_t need = fixture->out.len;
	expect(fixture, "{\"key\":[\"a\\n" FFFD "\",12,{},true]}");
	for (size_t max = 0; max <= need; max++) {
		struct buf small;
		buf_init(&small, max);
		struct json_writer writer;
		json_write_begin(&writer, &small);
		write_something(&writer);
		struct error err = {0};
		bool ok = json_write_end(&writer, &err);
		assert_int_equal(ok, max == need);
		assert_int_equal(err.code, ok ? ERROR_NONE : ERROR_LIMIT);
		assert_true(small.len <= max);
		buf_finish(&small);
	}
}

/* The first two pieces of a long string may end anywhere in a character or an escape. */
static void test_a_long_string_is_whole_wherever_its_pieces_end(void **state)
{
	static const char *const units[][2] = {{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"\x01", "\\u0001"}, {"\n", "\\n"}, {"\xff", FFFD}, {"a", "a"},
		{"abc\xc3\xa9\"", "abc\xc3\xa9\\\""}};
	enum { COUNT = 400, MOST = 8 * COUNT };
	struct error err;
	for (size_t unit = 0; unit < ARRAY_LENGTH(units); unit++) {
		for (size_t before = 0; before < 24; before++) {
			struct buf text, expected, out;
			struct json_writer writer;
			buf_init(&text, MOST);
			buf_init(&expected, MOST);
			buf_add(&expected, SPAN_LITERAL("\""));
			for (size_t i = 0; i < before + COUNT; i++) {
				bool is_first = i < before;
				buf_add(&text, span_of(is_first ? "." : units[unit][0]));
				buf_add(&expected, span_of(is_first ? "." : units[unit][1]));
			}
			buf_add(&expected, SPAN_LITERAL("\""));
			/* With exactly enough room, with more, and with one byte too few. */
			for (int more = -1; more <= 2000; more += 2001 / 2) {
				buf_init(&out, expected.len + (size_t)more);
				json_write_begin(&writer, &out);
				json_write_string(&writer, buf_span(&text));
				assert_int_equal(json_write_end(&writer, &err), more >= 0);
				assert_true(more < 0 ||
					    span_equals(buf_span(&out), buf_span(&expected)));
				buf_finish(&out);
			}
			buf_finish(&text);
			buf_finish(&expected);
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void test_members_are_a_key_and_a_value(void **state)
{
	struct buf out;
	struct json_writer writer;
	buf_init(&out, 1024);
	json_write_begin(&writer, &out);
	json_write_object(&writer);
	json_write_member(&writer, "a", "x\"");
	json_write_member(&writer, "b", NULL);
	json_write_member_string(&writer, "c", SPAN_LITERAL("y"));
	json_write_member_int(&writer, "d", -3);
	json_write_member_bool(&writer, "e", true);
	json_write_member_raw(&writer, "f", SPAN_LITERAL("[1]"));
	json_write_object_end(&writer);
	assert_true(json_write_end(&writer, NULL));
	assert_true(span_is(buf_span(&out),
		"{\"a\":\"x\\\"\",\"b\":null,\"c\":\"y\",\"d\":-3,\"e\":true,\"f\":[1]}"));
	buf_finish(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members_are_a_key_and_a_value),
		TEST(test_commas_stand_between_members_and_elements_only),
		TEST(test_every_kind_of_value_can_stand_alone),
		TEST(test_the_smallest_and_largest_numbers_are_written),
		TEST(test_strings_and_keys_are_escaped),
		TEST(test_every_control_character_is_escaped),
		TEST(test_every_byte_is_seen_wherever_it_stands),
		TEST(test_bytes_that_are_not_utf_8_are_replaced),
		cmocka_unit_test(test_a_long_string_is_whole_wherever_its_pieces_end),
		TEST(test_what_is_in_the_buffer_stays_before_it),
		TEST(test_the_deepest_level_can_be_written),
		TEST(test_a_full_buffer_is_told_at_the_end_and_never_passed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
