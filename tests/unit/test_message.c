/* SPDX-License-Identifier: MIT */
#include "acp/message.h"
#include "tests/support/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_MESSAGE = 4096, LONG_ID = JSON_KEEP_MAX + 2 };

static struct json_places *places;
static struct frame_reader *reader;
static struct frame frame;
static struct message message;

static int set_up(void **state)
{
	places = places_create();
	reader = frame_reader_create(places, MAX_MESSAGE);
	return 0;
}

static int tear_down(void **state)
{
	frame_reader_destroy(reader);
	json_places_destroy(places);
	return 0;
}

/* Makes the line the frame in hand. */
static void take(struct span line)
{
	size_t room;
	char *space = frame_reader_space(reader, &room);
	assert_true(room > line.len);
	memcpy(space, line.data, line.len);
	space[line.len] = '\n';
	frame_reader_fed(reader, line.len + 1);
	assert_true(frame_reader_next(reader, &frame));
}

static void read_ok(const char *line)
{
	struct error err;
	take(span_of(line));
	assert_int_equal(frame.kind, FRAME_MESSAGE);
	if (!message_read(&message, &frame, &err)) {
		fail_msg("%s: %s", line, err.text);
	}
}

static void assert_refused(const char *line, const char *why)
{
	struct error err;
	take(span_of(line));
	assert_int_equal(frame.kind, FRAME_MESSAGE);
	if (message_read(&message, &frame, &err)) {
		fail_msg("%s was taken", line);
	}
	assert_int_equal(err.code, ERROR_PROTOCOL);
	assert_names(err.text, why);
}

/* ---- the envelope ---- */

static void test_a_method_with_an_id_is_a_request(void **state)
{
	static const char *const ids[] = {
		"0", "-7", "1.50", "9007199254740993", "\"\"", "\"a\\u0062\"", "null", "1e-3"};
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		char line[128];
		snprintf(line, sizeof(line),
			"{\"id\":%s,\"method\":\"session/new\",\"jsonrpc\":"
			"\"2.0\"}",
			ids[i]);
		read_ok(line);
		assert_int_equal(message.kind, MESSAGE_REQUEST);
		assert_true(span_is(message.id, ids[i]));
		assert_string_equal(message.method, "session/new");
		assert_true(span_is(message.text, line));
	}
}

static void test_a_method_without_an_id_is_a_notification(void **state)
{
	static const char *const lines[] = {
		"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":null}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":[1]}",
		" {\"jsonrpc\":\"2.0\",\"method\":\"session\\/canc\\u0065l\",\"new\":[{}]} ",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		read_ok(lines[i]);
		assert_int_equal(message.kind, MESSAGE_NOTIFICATION);
		assert_int_equal(message.id.len, 0);
		assert_string_equal(message.method, "session/cancel");
	}
}

static void test_a_result_or_an_error_is_a_response(void **state)
{
	static const struct {
		const char *line;
		bool is_error;
	} lines[] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":null}", false},
		{"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"error\":{}}}", false},
		{"{\"result\":0,\"id\":3,\"jsonrpc\":\"2.0\"}", false},
		{"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-1}}", true},
		{"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{}}", true},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		read_ok(lines[i].line);
		assert_int_equal(message.kind, MESSAGE_RESPONSE);
		assert_int_equal(message.is_error, lines[i].is_error);
		assert_true(span_is(message.id, "3"));
		assert_string_equal(message.method, "");
	}
}

static void test_each_broken_rule_is_named(void **state)
{
	static const struct {
		const char *line;
		const char *why;
	} cases[] = {
		{"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}]", "batches"},
		{" \t[]", "batches"},
		{"7", "not a JSON object"},
		{"\"{\"", "not a JSON object"},
		{"null", "not a JSON object"},
		{"{}", "\"jsonrpc\" is not \"2.0\""},
		{"{\"id\":1,\"method\":\"a\"}", "\"jsonrpc\" is not \"2.0\""},
		{"{\"jsonrpc\":\"1.0\",\"method\":\"a\"}", "\"jsonrpc\" is not \"2.0\""},
		{"{\"jsonrpc\":2.0,\"method\":\"a\"}", "\"jsonrpc\" is not \"2.0\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"a\"}",
			"\"id\" | string | number | null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"a\"}",
			"\"id\" | string | number | null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"a\"}",
			"\"id\" | string | number | null"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", "\"method\" | string"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7,\"result\":1}", "\"method\" | string"},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":1}",
			"\"params\" | object | array"},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":\"x\"}",
			"\"params\" | object | array"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"result\":1}",
			"with \"method\" | \"result\" | \"error\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"error\":{}}",
			"with \"method\" | \"result\" | \"error\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":1}", "no \"method\" | \"result\" | \"error\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{}}",
			"no \"method\" | \"result\" | \"error\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"text\"}", "\"error\" | object"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":null}", "\"error\" | object"},
		{"{\"jsonrpc\":\"2.0\",\"result\":{}}", "response | \"id\""},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_refused(cases[i].line, cases[i].why);
	}
}

static void test_a_long_id_is_refused(void **state)
{
	char line[LONG_ID + 128];
	char id[LONG_ID + 1];
	memset(id, '7', LONG_ID);
	id[LONG_ID] = '\0';
	snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"a\"}", id);
	assert_refused(line, "\"id\" is longer than 256 bytes");
	id[JSON_KEEP_MAX] = '\0';
	snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"a\"}", id);
	read_ok(line);
	assert_true(span_is(message.id, id));
}

static void test_a_method_nobody_can_know_has_no_name(void **state)
{
	char name[MESSAGE_METHOD_MAX + 1];
	char line[MESSAGE_METHOD_MAX + 64];
	memset(name, 'm', MESSAGE_METHOD_MAX);
	name[MESSAGE_METHOD_MAX] = '\0';
	snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"}", name);
	read_ok(line);
	assert_int_equal(message.kind, MESSAGE_NOTIFICATION);
	assert_string_equal(message.method, "");
	read_ok("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}");
	assert_int_equal(message.kind, MESSAGE_REQUEST);
	assert_string_equal(message.method, "");
	name[MESSAGE_METHOD_MAX - 1] = '\0';
	snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"}", name);
	read_ok(line);
	assert_string_equal(message.method, name);
}

/* ---- the id of a line that was refused ---- */

static void test_the_id_of_a_refused_line_is_known(void **state)
{
	static const struct {
		const char *line;
		const char *id; // "" is unknown
		bool has_method;
		bool is_response;
	} cases[] = {
		{"{\"id\":7,\"method\":\"a\",}", "7", true, false},
		{"{\"id\":\"x\",\"result\":[", "\"x\"", false, false},
		{"{\"method\":\"a\",\"id\":", "", true, false},
		{"{\"id\":12", "", false, false},
		{"{\"id\":{},\"method\":\"a\",\"jsonrpc\":\"2.0\"}", "", true, false},
		{"{\"id\":true,\"jsonrpc\":\"2.0\"}", "", false, false},
		{"{\"id\":null,\"method\":\"a\"}", "null", true, false},
		{"{\"id\":1,\"id\":2,\"method\":\"a\"}", "1", false, false},
		{"{\"id\":3,\"result\":1}", "3", false, true},
		{"{\"id\":3,\"error\":{},}", "3", false, true},
		{"{\"id\":3,\"method\":\"a\",\"result\":1}", "3", true, false},
		{"not JSON", "", false, false},
		{"[{\"id\":1,\"method\":\"a\"}]", "", false, false},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		take(span_of(cases[i].line));
		assert_true(span_is(message_broken_id(&frame), cases[i].id));
		assert_int_equal(message_broken_has_method(&frame), cases[i].has_method);
		assert_int_equal(message_broken_is_response(&frame), cases[i].is_response);
	}
}

static void test_the_id_of_a_line_that_is_too_long_is_known_where_it_comes_last(void **state)
{
	char line[2 * MAX_MESSAGE];
	int len = snprintf(line, sizeof(line), "{\"result\":\"%*s\",\"id\":42}", MAX_MESSAGE, "");
	take((struct span){line, (size_t)len});
	assert_int_equal(frame.kind, FRAME_TOO_LONG);
	assert_true(span_is(message_broken_id(&frame), "42"));
	assert_false(message_broken_has_method(&frame));
}

/* ---- places ---- */

static void test_strings_are_decoded(void **state)
{
	static const struct {
		const char *raw;
		const char *text; // NULL: there is none
	} cases[] = {
		{"\"plain\"", "plain"},
		{"\"\"", ""},
		{"\"\\u00e9\\n\\\"\\/\"", "\xc3\xa9\n\"/"},
		{"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
		{"\"1234567\"", "1234567"},
		{"\"12345678\"", NULL},
		{"\"\\u0031234567\"", "1234567"},
		{"\"\\u00312345678\"", NULL},
		{"\"a\\u0000b\"", NULL},
		{"7", NULL},
		{"null", NULL},
		{"[\"a\"]", NULL},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char line[128];
		char text[8] = "before";
		snprintf(line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"sessionId\":%s}}",
			cases[i].raw);
		read_ok(line);
		assert_true(span_is(message_place(&message, PLACE_SESSION_ID), cases[i].raw));
		bool ok = message_string(&message, PLACE_SESSION_ID, text, sizeof(text));
		assert_int_equal(ok, cases[i].text != NULL);
		if (ok) {
			assert_string_equal(text, cases[i].text);
		}
	}
}

static void test_an_absent_place_is_empty(void **state)
{
	char text[8];
	read_ok("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}");
	assert_int_equal(message_place(&message, PLACE_PARAMS).len, 0);
	assert_null(message_hit(&message, PLACE_SESSION_ID));
	assert_false(message_string(&message, PLACE_SESSION_ID, text, sizeof(text)));
}

static void test_places_that_come_several_times_are_read_one_by_one(void **state)
{
	static const char *const expected[] = {"/a", "/b c"};
	char text[16];
	size_t found = 0;
	read_ok("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"additionalDirectories\":"
		"[\"/a\",\"/b\\u0020c\"]}}");
	for (size_t i = 0; i < json_check_hit_count(message.check); i++) {
		const struct json_hit *hit = &json_check_hits(message.check)[i];
		if (hit->place == PLACE_ADDITIONAL_DIRECTORY) {
			assert_true(message_hit_string(&message, hit, text, sizeof(text)));
			assert_string_equal(text, expected[found++]);
		}
	}
	assert_int_equal(found, 2);
}

#define MESSAGE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MESSAGE_TEST(test_a_method_with_an_id_is_a_request),
		MESSAGE_TEST(test_a_method_without_an_id_is_a_notification),
		MESSAGE_TEST(test_a_result_or_an_error_is_a_response),
		MESSAGE_TEST(test_each_broken_rule_is_named),
		MESSAGE_TEST(test_a_long_id_is_refused),
		MESSAGE_TEST(test_a_method_nobody_can_know_has_no_name),
		MESSAGE_TEST(test_the_id_of_a_refused_line_is_known),
		MESSAGE_TEST(test_the_id_of_a_line_that_is_too_long_is_known_where_it_comes_last),
		MESSAGE_TEST(test_strings_are_decoded),
		MESSAGE_TEST(test_an_absent_place_is_empty),
		MESSAGE_TEST(test_places_that_come_several_times_are_read_one_by_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
