/* SPDX-License-Identifier: MIT */
#include "broker/policy/subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/text.h"
#include "tests/support/facts.h"

enum { MAX_MESSAGE = 1 << 20, TEXT_MAX = 32 };

static struct json_places *places;
static struct frame_reader *reader;
static struct frame frame;
static struct message message;
static struct subject subject;
static struct error error;

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

/* Reads the subject of a message of this method, with these params. */
static bool read_subject(const char *method, const char *params)
{
	char line[4096];
	enum policy_operation operation;
	int len = snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}\n", method, params);
	assert_in_range(len, 1, sizeof(line) - 1);
	size_t room;
	memcpy(frame_reader_space(reader, &room), line, (size_t)len);
	frame_reader_fed(reader, (size_t)len);
	assert_true(frame_reader_next(reader, &frame));
	assert_int_equal(frame.kind, FRAME_MESSAGE);
	assert_true(message_read(&message, &frame, &error));
	assert_true(subject_operation(method, &operation));
	return subject_read(&subject, operation, &message, &error);
}

static void read_ok(const char *method, const char *params)
{
	if (!read_subject(method, params)) {
		fail_msg("%s: %s", params, error.text);
	}
}

static void assert_refused(const char *method, const char *params, const char *why)
{
	if (read_subject(method, params)) {
		fail_msg("%s was taken", params);
	}
	assert_int_equal(error.code, ERROR_PROTOCOL);
	assert_string_equal(error.reason, "INVALID_PARAMS");
	assert_names(error.text, why);
	assert_int_equal(subject.unknown, POLICY_UNKNOWN_ALL);
	assert_null(subject.paths);
	assert_null(subject.command);
}

/* The words, with a bar after each; "-" if there is no list. */
static void assert_words(char *const *words, const char *expected)
{
	char joined[256] = "";
	size_t used = 0;
	for (; words && *words; words++) {
		used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s|", *words);
	}
	assert_string_equal(words ? joined : "-", expected);
}

/* ---- the methods ---- */

static void test_policy_has_a_say_in_four_methods(void **state)
{
	static const struct {
		const char *method;
		enum policy_operation operation;
	} methods[] = {
		{"fs/read_text_file", POLICY_READ},
		{"fs/write_text_file", POLICY_WRITE},
		{"terminal/create", POLICY_TERMINAL},
		{"session/request_permission", POLICY_GRANT},
		{"read", POLICY_READ},
		{"write", POLICY_WRITE},
		{"terminal", POLICY_TERMINAL},
		{"grant", POLICY_GRANT},
	};
	static const char *const others[] = {"", "terminal/kill", "terminal/output",
		"fs/read_text_files", "session/update", "elicitation/create"};
	enum policy_operation operation;
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		assert_true(subject_operation(methods[i].method, &operation));
		assert_int_equal(operation, methods[i].operation);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		assert_false(subject_operation(others[i], &operation));
	}
}

static void test_a_file_request_is_about_its_path(void **state)
{
	read_ok("fs/read_text_file", "{\"sessionId\":\"s\",\"path\":\"/a\\u0020b\",\"line\":1}");
	assert_int_equal(subject.operation, POLICY_READ);
	assert_words(subject.paths, "/a b|");
	assert_words(subject.command, "-");
	assert_null(subject.kind);
	subject_finish(&subject);
	read_ok("fs/write_text_file", "{\"content\":\"x\",\"path\":\"relative/../x\"}");
	assert_int_equal(subject.operation, POLICY_WRITE);
	assert_words(subject.paths, "relative/../x|");
	subject_finish(&subject);
}

static void test_a_terminal_request_is_about_its_words(void **state)
{
	read_ok("terminal/create", "{\"command\":\"git\",\"args\":[\"log\",\"a \\\"b\\\"\",\"\"]}");
	assert_words(subject.command, "git|log|a \"b\"||");
	assert_false(subject.shell_line);
	assert_words(subject.paths, "-");
	subject_finish(&subject);
}

static void test_a_command_without_args_is_a_shell_line(void **state)
{
	static const char *const params[] = {
		"{\"command\":\"git log | cat\"}",
		"{\"command\":\"git log | cat\",\"args\":[]}",
		"{\"command\":\"git log | cat\",\"args\":null}",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(params); i++) {
		read_ok("terminal/create", params[i]);
		assert_words(subject.command, "git log | cat|");
		assert_true(subject.shell_line);
		subject_finish(&subject);
	}
}

static void test_what_is_missing_or_wrong_is_named(void **state)
{
	static const struct {
		const char *method;
		const char *params;
		const char *why;
	} cases[] = {
		{"fs/read_text_file", "{}", "params.path is missing"},
		{"fs/read_text_file", "null", "params.path is missing"},
		{"fs/read_text_file", "[\"/a\"]", "params.path is missing"},
		{"fs/write_text_file", "{\"path\":null}", "params.path | string | NUL"},
		{"fs/write_text_file", "{\"path\":[\"/a\"]}", "params.path | string | NUL"},
		{"fs/write_text_file", "{\"path\":\"/a\\u0000b\"}", "params.path | string | NUL"},
		{"terminal/create", "{\"args\":[\"x\"]}", "params.command is missing"},
		{"terminal/create", "{\"command\":7}", "params.command | string | NUL"},
		{"terminal/create", "{\"command\":\"ls\",\"args\":[1]}",
			"params.args | string | NUL"},
		{"terminal/create", "{\"command\":\"ls\",\"args\":[\"a\\u0000\"]}",
			"params.args | string | NUL"},
		{"terminal/create", "{\"command\":\"ls\",\"args\":\"-l\"}",
			"params.args is not an array"},
		{"terminal/create", "{\"command\":\"ls\",\"args\":{\"0\":\"-l\"}}",
			"params.args is not an array"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_refused(cases[i].method, cases[i].params, cases[i].why);
	}
}

static void test_a_permission_is_about_its_tool_call(void **state)
{
	read_ok("session/request_permission",
		"{\"toolCall\":{\"toolCallId\":\"t\",\"kind\":\"edit\",\"title\":\"x\","
		"\"locations\":[{\"path\":\"/a\",\"line\":3},{\"line\":1},{\"path\":\"/b\"}],"
		"\"content\":[{\"type\":\"diff\",\"path\":\"/c\"},{\"type\":\"content\"}]},"
		"\"options\":[]}");
	assert_int_equal(subject.operation, POLICY_GRANT);
	assert_string_equal(subject.kind, "edit");
	assert_words(subject.paths, "/a|/b|/c|");
	assert_words(subject.command, "-");
	subject_finish(&subject);
}

static void test_a_tool_call_may_say_its_command(void **state)
{
	read_ok("session/request_permission",
		"{\"toolCall\":{\"kind\":\"execute\",\"rawInput\":{\"command\":\"rm -r x\"}}}");
	assert_words(subject.command, "rm -r x|");
	assert_true(subject.shell_line);
	subject_finish(&subject);
	read_ok("session/request_permission",
		"{\"toolCall\":{\"rawInput\":{\"command\":[\"bash\",\"-lc\",\"rm -r x\"]}}}");
	assert_words(subject.command, "bash|-lc|rm -r x|");
	assert_false(subject.shell_line);
	assert_null(subject.kind);
	subject_finish(&subject);
}

static void test_a_tool_call_that_says_nothing_is_taken(void **state)
{
	static const char *const params[] = {
		"{\"toolCall\":{}}",
		"{\"toolCall\":{\"kind\":null,\"locations\":null,\"content\":null,\"rawInput\":1}}",
		"{\"toolCall\":{\"kind\":7,\"rawInput\":{\"command\":{}},\"locations\":[7]}}",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(params); i++) {
		read_ok("session/request_permission", params[i]);
		assert_null(subject.kind);
		assert_words(subject.paths, "-");
		assert_words(subject.command, "-");
		subject_finish(&subject);
	}
}

static void test_what_a_tool_call_says_in_another_form_is_unknown(void **state)
{
	static const struct {
		const char *params;
		unsigned unknown;
	} cases[] = {
		{"{}", POLICY_UNKNOWN_ALL},
		{"null", POLICY_UNKNOWN_ALL},
		{"{\"toolCall\":null}", POLICY_UNKNOWN_ALL},
		{"{\"toolCall\":[]}", POLICY_UNKNOWN_ALL},
		{"{\"toolCall\":{\"locations\":[{\"path\":\"/ok\"},{\"path\":7}]}}",
			POLICY_UNKNOWN_PATHS},
		{"{\"toolCall\":{\"locations\":[{\"path\":null}]}}", POLICY_UNKNOWN_PATHS},
		{"{\"toolCall\":{\"content\":[{\"path\":\"/a\\u0000\"}]}}", POLICY_UNKNOWN_PATHS},
		{"{\"toolCall\":{\"rawInput\":{\"command\":[\"ls\",7]}}}", POLICY_UNKNOWN_COMMAND},
		{"{\"toolCall\":{\"rawInput\":{\"command\":\"a\\u0000b\"}}}",
			POLICY_UNKNOWN_COMMAND},
		{"{\"toolCall\":{\"rawInput\":{\"command\":\"a\",\"command\":\"b\"}}}",
			POLICY_UNKNOWN_COMMAND},
		{"{\"toolCall\":{\"rawInput\":{\"command\":{\"rm\":1}}}}", POLICY_UNKNOWN_COMMAND},
		{"{\"toolCall\":{\"rawInput\":{\"command\":null}}}", 0},
		{"{\"toolCall\":{\"kind\":\"read\",\"kind\":\"edit\"}}", POLICY_UNKNOWN_KIND},
		{"{\"toolCall\":{\"kind\":5}}", POLICY_UNKNOWN_KIND},
		{"{\"toolCall\":{\"kind\":null}}", 0},
		{"{\"toolCall\":{\"kind\":\"edit\",\"rawInput\":[null]}}", 0},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		read_ok("session/request_permission", cases[i].params);
		if (subject.unknown != cases[i].unknown) {
			fail_msg("%s: %u", cases[i].params, subject.unknown);
		}
		assert_int_equal(subject_query(&subject, NULL).unknown, cases[i].unknown);
		subject_finish(&subject);
	}
}

/* The message is longer than those of the other tests. */
static bool read_long(enum policy_operation operation, const struct buf *line)
{
	size_t room;
	char *space = frame_reader_space(reader, &room);
	assert_true(room >= line->len);
	memcpy(space, buf_span(line).data, line->len);
	frame_reader_fed(reader, line->len);
	assert_true(frame_reader_next(reader, &frame));
	assert_true(message_read(&message, &frame, &error));
	return subject_read(&subject, operation, &message, &error);
}

static void append(struct buf *buf, const char *text, int times)
{
	for (int i = 0; i < times; i++) {
		assert_true(buf_append(buf, span_of(text), NULL));
	}
}

static const char permission[] =
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/request_permission\",\"params\":{"
	"\"toolCall\":{\"kind\":\"edit\",\"locations\":[{\"path\":\"/a\"}],\"rawInput\":{";

static void test_a_tool_calls_input_may_be_of_any_size(void **state)
{
	enum { ROWS = 6000 };
	struct buf line;
	buf_init(&line, MAX_MESSAGE);
	append(&line, permission, 1);
	append(&line, "\"rows\":[0", 1);
	append(&line, ",[1,{}]", ROWS);
	append(&line, "],\"command\":\"make\"}}}}\n", 1);
	assert_true(read_long(POLICY_GRANT, &line));
	assert_int_equal(subject.unknown, 0);
	assert_string_equal(subject.kind, "edit");
	assert_words(subject.paths, "/a|");
	assert_words(subject.command, "make|");
	subject_finish(&subject);
	buf_finish(&line);
}

static void test_more_words_than_policy_looks_at_are_unknown(void **state)
{
	static const int counts[] = {4097, 20000};
	for (size_t i = 0; i < ARRAY_LENGTH(counts); i++) {
		struct buf line;
		buf_init(&line, MAX_MESSAGE);
		append(&line, permission, 1);
		append(&line, "\"command\":[\"x\"", 1);
		append(&line, ",\"\"", counts[i] - 1);
		append(&line, "]}}}}\n", 1);
		assert_true(read_long(POLICY_GRANT, &line));
		assert_int_equal(subject.unknown, POLICY_UNKNOWN_COMMAND);
		assert_words(subject.paths, "/a|");
		subject_finish(&subject);
		buf_finish(&line);
	}
}

static void test_what_is_unknown_equals_nothing(void **state)
{
	read_ok("session/request_permission", "{}");
	assert_false(subject_equals(&subject, &subject));
	subject_finish(&subject);
	read_ok("session/request_permission", "{\"toolCall\":{}}");
	assert_true(subject_equals(&subject, &subject));
	subject_finish(&subject);
}

static void test_a_flood_of_words_is_refused(void **state)
{
	struct buf params;
	struct buf line;
	buf_init(&params, MAX_MESSAGE);
	buf_init(&line, MAX_MESSAGE);
	assert_true(buf_append(&params, SPAN_LITERAL("{\"command\":\"x\",\"args\":[\"\""), NULL));
	for (int i = 0; i < 4096; i++) {
		assert_true(buf_append(&params, SPAN_LITERAL(",\"\""), NULL));
	}
	assert_true(buf_append_format(&line, NULL,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"terminal/create\",\"params\":%.*s]}}\n",
		(int)params.len, buf_span(&params).data));
	assert_false(read_long(POLICY_TERMINAL, &line));
	assert_int_equal(error.code, ERROR_LIMIT);
	assert_string_equal(error.reason, "RESOURCE_LIMIT_EXCEEDED");
	buf_finish(&params);
	buf_finish(&line);
}

/* ---- what the subject is used for ---- */

static void test_the_query_has_all_that_was_read(void **state)
{
	static const char *const roots[] = {"/r", NULL};
	read_ok("session/request_permission",
		"{\"toolCall\":{\"kind\":\"execute\",\"rawInput\":{\"command\":\"ls\"},"
		"\"locations\":[{\"path\":\"/a\"}]}}");
	struct policy_query query = subject_query(&subject, roots);
	assert_int_equal(query.operation, POLICY_GRANT);
	assert_ptr_equal(query.roots, roots);
	assert_string_equal(query.paths[0], "/a");
	assert_string_equal(query.command[0], "ls");
	assert_true(query.shell_line);
	assert_string_equal(query.tool_kind, "execute");
	subject_finish(&subject);
}

static void assert_text(const char *method, const char *params, const char *expected)
{
	char text[TEXT_MAX];
	read_ok(method, params);
	assert_string_equal(subject_text(&subject, text, sizeof(text)), expected);
	subject_finish(&subject);
}

static void test_a_user_is_shown_the_words_or_the_first_path(void **state)
{
	assert_text("fs/read_text_file", "{\"path\":\"/a\"}", "/a");
	assert_text("terminal/create", "{\"command\":\"ls\",\"args\":[\"-l\",\"/\"]}", "ls -l /");
	assert_text("terminal/create",
		"{\"command\":\"0123456789\",\"args\":[\"0123456789\","
		"\"0123456789\",\"more\"]}",
		"0123456789 0123456789 012345" TEXT_CUT);
	assert_text("session/request_permission",
		"{\"toolCall\":{\"locations\":[{\"path\":\"/a\"},{\"path\":\"/b\"}]}}", "/a");
	assert_text("session/request_permission", "{\"toolCall\":{}}", "");
}

#define SUBJECT_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy_has_a_say_in_four_methods),
		SUBJECT_TEST(test_a_file_request_is_about_its_path),
		SUBJECT_TEST(test_a_terminal_request_is_about_its_words),
		SUBJECT_TEST(test_a_command_without_args_is_a_shell_line),
		SUBJECT_TEST(test_what_is_missing_or_wrong_is_named),
		SUBJECT_TEST(test_a_permission_is_about_its_tool_call),
		SUBJECT_TEST(test_a_tool_call_may_say_its_command),
		SUBJECT_TEST(test_a_tool_call_that_says_nothing_is_taken),
		SUBJECT_TEST(test_what_a_tool_call_says_in_another_form_is_unknown),
		SUBJECT_TEST(test_a_tool_calls_input_may_be_of_any_size),
		SUBJECT_TEST(test_more_words_than_policy_looks_at_are_unknown),
		SUBJECT_TEST(test_what_is_unknown_equals_nothing),
		SUBJECT_TEST(test_a_flood_of_words_is_refused),
		SUBJECT_TEST(test_the_query_has_all_that_was_read),
		SUBJECT_TEST(test_a_user_is_shown_the_words_or_the_first_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
