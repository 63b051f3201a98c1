/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "acp/places.h"
#include "base/attr.h"
#include "base/json_doc.h"
#include "broker/agent/mcp_door.h"

/* Everything here is written with ' for ". */
static struct mcp_wish wish;
static struct buf answer;
static bool is_greeted;

static int set_up(void **state)
{
	wish = (struct mcp_wish){.kind = MCP_WISH_NOTHING};
	is_greeted = true;
	buf_init(&answer, SIZE_MAX / 2);
	return 0;
}

static int tear_down(void **state)
{
	mcp_wish_finish(&wish);
	buf_finish(&answer);
	return 0;
}

static char *quoted(const char *text)
{
	char *copy = mem_strdup(text);
	for (char *at = copy; *at; at++) {
		*at = *at == '\'' ? '"' : *at;
	}
	return copy;
}

static void read_line(const char *line)
{
	char *text = quoted(line);
	size_t room;
	struct frame frame;
	struct json_places *places = places_create();
	struct frame_reader *reader = frame_reader_create(places, MCP_LINE_MAX);
	for (size_t at = 0, len = strlen(text); at < len;) {
		char *space = frame_reader_space(reader, &room);
		room = room < len - at ? room : len - at;
		memcpy(space, text + at, room);
		frame_reader_fed(reader, room);
		at += room;
		if (at < len) {
			assert_false(frame_reader_next(reader, &frame));
		}
	}
	assert_true(frame_reader_next(reader, &frame) || frame_reader_end(reader, &frame));
	mcp_wish_finish(&wish);
	buf_clear(&answer);
	mcp_wish_read(&wish, &frame, &is_greeted, &answer);
	frame_reader_destroy(reader);
	json_places_destroy(places);
	free(text);
}

/* Whether the answer has this value at a path like "error.code", as it is written. */
static bool says(const char *dotted, const char *value)
{
	char *wanted = quoted(value);
	struct error err;
	struct json_doc *doc = json_doc_parse(buf_span(&answer), &err);
	assert_non_null(doc);
	json_node node = json_path(doc, 0, dotted);
	bool is_it = node != JSON_NODE_NONE && span_is(json_raw(doc, node), wanted);
	json_doc_destroy(doc);
	free(wanted);
	return is_it;
}

static void call(const char *tool, const char *arguments)
{
	char line[1024];
	snprintf(line, sizeof(line),
		"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s',"
		"'arguments':%s}}",
		tool, arguments);
	read_line(line);
}

static void test_a_command_is_read_word_by_word(void **state)
{
	call("exec", "{'command':['a b','$c',''],'stdin':'in','cwd':'/d','timeoutMs':5}");
	assert_int_equal(wish.kind, MCP_WISH_CALL);
	assert_string_equal(wish.id, "1");
	assert_string_equal(wish.words[0], "a b");
	assert_string_equal(wish.words[1], "$c");
	assert_string_equal(wish.words[2], "");
	assert_null(wish.words[3]);
	assert_true(wish.has_input && span_is(buf_span(&wish.input), "in"));
	assert_string_equal(wish.cwd, "/d");
	assert_int_equal(wish.timeout_ms, 5);
	assert_int_equal(answer.len, 0);
}

static void test_code_is_the_last_argument_of_its_program(void **state)
{
	static const char *const languages[][3] = {
		{"python", "python3", "-c"}, {"node", "node", "-e"}, {"bash", "bash", "-c"}};
	char arguments[128];
	for (size_t i = 0; i < ARRAY_LENGTH(languages); i++) {
		snprintf(arguments, sizeof(arguments), "{'language':'%s','code':'x; y'}",
			languages[i][0]);
		call("run", arguments);
		assert_int_equal(wish.kind, MCP_WISH_CALL);
		assert_string_equal(wish.words[0], languages[i][1]);
		assert_string_equal(wish.words[1], languages[i][2]);
		assert_string_equal(wish.words[2], "x; y");
		assert_null(wish.words[3]);
	}
}

static void test_wrong_arguments_are_a_failed_result(void **state)
{
	static const char *const wrong[] = {"{}", "{'command':[]}", "{'command':['']}",
		"{'command':'ls'}", "{'command':[7]}", "{'command':['a\\u0000b']}", "7",
		"{'command':['ls'],'stdin':7}", "{'command':['ls'],'cwd':'x'}",
		"{'command':['ls'],'timeoutMs':0}", "{'command':['ls'],'timeoutMs':86400001}",
		"{'command':['ls'],'timeoutMs':'5'}"};
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		call("exec", wrong[i]);
		assert_int_equal(wish.kind, MCP_WISH_NOTHING);
		assert_true(says("result.isError", "true"));
		assert_true(says("id", "1"));
	}
}

static void test_ids_are_kept_as_they_are_written(void **state)
{
	static const char *const ids[] = {"'\\u0061'", "-0", "1.50e3", "9007199254740993", "''"};
	char line[128];
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		snprintf(line, sizeof(line), "{'jsonrpc':'2.0','id':%s,'method':'ping'}", ids[i]);
		read_line(line);
		assert_true(says("id", ids[i]) && says("result", "{}"));
	}
}

static void test_what_is_no_request_gets_an_error_with_its_id(void **state)
{
	static const char *const lines[] = {"7", "[]", "{}",
		"{'jsonrpc':'2.0','id':{},'method':'ping'}",
		"{'jsonrpc':'2.0','id':null,'method':'ping'}",
		"{'jsonrpc':'2.0','id':true,'method':'ping'}"};
	static const char *const with_id[] = {"{'id':1,'method':'ping'}",
		"{'jsonrpc':'2.0','id':1,'Method':'x','method':'ping'}",
		("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'exec',"
		 "'arguments':{'command':['true'],'comm\\u0061nd':['false']}}}")};
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		read_line(lines[i]);
		assert_int_equal(wish.kind, MCP_WISH_NOTHING);
		assert_true(says("id", "null") && says("error.code", "-32600"));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(with_id); i++) {
		read_line(with_id[i]);
		assert_int_equal(wish.kind, MCP_WISH_NOTHING);
		assert_true(says("id", "1") && says("error.code", "-32600"));
	}
}

static void test_an_id_that_comes_twice_is_refused(void **state)
{
	read_line("{'jsonrpc':'2.0','id':1,'id':2,'method':'ping'}");
	assert_int_equal(wish.kind, MCP_WISH_NOTHING);
	assert_true(says("id", "1") && says("error.code", "-32700"));
}

static void test_what_needs_no_answer_gets_none(void **state)
{
	static const char *const lines[] = {
		"{'jsonrpc':'2.0','method':'notifications/initialized'}",
		("{'jsonrpc':'2.0','method':'tools/call','params':{'name':'exec',"
		 "'arguments':{'command':['true']}}}"),
		"{'jsonrpc':'2.0','method':'notifications/cancelled'}",
		"{'jsonrpc':'2.0','id':1,'result':{}}"};
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		read_line(lines[i]);
		assert_int_equal(wish.kind, MCP_WISH_NOTHING);
		assert_int_equal(answer.len, 0);
	}
	read_line(
		"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':'x'}}");
	assert_int_equal(wish.kind, MCP_WISH_CANCEL);
	assert_string_equal(wish.id, "\"x\"");
}

static void test_tools_need_initialize_first(void **state)
{
	is_greeted = false;
	read_line("{'jsonrpc':'2.0','id':1,'method':'tools/list'}");
	assert_true(says("error.code", "-32600"));
	read_line("{'jsonrpc':'2.0','id':1,'method':'ping'}");
	assert_true(says("result", "{}") && !is_greeted);
	read_line("{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':"
		  "'2025-06-18'}}");
	assert_true(says("result.protocolVersion", "'2025-06-18'") && is_greeted);
	read_line("{'jsonrpc':'2.0','id':1,'method':'tools/list'}");
	assert_true(says("id", "1") && !says("error.code", "-32600"));
}

static void test_unknown_methods_and_tools_are_errors(void **state)
{
	read_line("{'jsonrpc':'2.0','id':1,'method':'no/such'}");
	assert_true(says("error.code", "-32601"));
	call("no-such", "{}");
	assert_true(says("error.code", "-32602"));
}

static void test_a_line_that_is_too_long_or_no_json_is_an_error(void **state)
{
	char *line = mem_alloc_zero(MCP_LINE_MAX + 100);
	const char *begin = "{'jsonrpc':'2.0','method':'ping','id':'last','params':'";
	memset(line, 'y', MCP_LINE_MAX);
	memcpy(line, begin, strlen(begin));
	memcpy(line + MCP_LINE_MAX, "'}", 3);
	read_line(line);
	free(line);
	assert_true(says("error.code", "-32600") && says("id", "'last'"));
	read_line("{'jsonrpc':'2.0','id':7,'method':'ping'");
	assert_true(says("error.code", "-32700") && says("id", "7"));
	read_line("?");
	assert_true(says("error.code", "-32700") && says("id", "null"));
	read_line("{'id':8,'method':'ping'}");
	assert_true(says("error.code", "-32600") && says("id", "8"));
}

static void test_a_broken_answer_is_not_answered(void **state)
{
	read_line("{'jsonrpc':'2.0','id':7,'result':{}");
	assert_int_equal(answer.len, 0);
}

static bool has_text(const char *text)
{
	struct span span = buf_span(&answer);
	return memmem(span.data, span.len, text, strlen(text)) != NULL;
}

static void test_an_outcome_has_both_outputs_apart(void **state)
{
	const struct mcp_outcome outcome = {.code = 3,
		.out = SPAN_LITERAL("o\xe2\x82"),
		.errors = SPAN_LITERAL("\xff"),
		.out_is_cut = true};
	mcp_outcome_write(&outcome, "7", &answer);
	assert_true(says("result.isError", "true") && says("id", "7"));
	assert_true(has_text("exit code 3") && has_text("stdout:\\no\\n[stdout"));
	assert_true(has_text("stderr:\\n\xef\xbf\xbd"));
	const struct mcp_outcome fine = {.code = 0};
	buf_clear(&answer);
	mcp_outcome_write(&fine, "7", &answer);
	assert_true(says("result.isError", "false") && !has_text("stdout"));
	const struct mcp_outcome killed = {.signal = 9};
	buf_clear(&answer);
	mcp_outcome_write(&killed, "7", &answer);
	assert_true(says("result.isError", "true") && has_text("SIGKILL"));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_command_is_read_word_by_word),
		CASE(test_code_is_the_last_argument_of_its_program),
		CASE(test_wrong_arguments_are_a_failed_result),
		CASE(test_ids_are_kept_as_they_are_written),
		CASE(test_what_is_no_request_gets_an_error_with_its_id),
		CASE(test_what_needs_no_answer_gets_none),
		CASE(test_tools_need_initialize_first),
		CASE(test_unknown_methods_and_tools_are_errors),
		CASE(test_a_line_that_is_too_long_or_no_json_is_an_error),
		CASE(test_a_broken_answer_is_not_answered),
		CASE(test_an_id_that_comes_twice_is_refused),
		CASE(test_an_outcome_has_both_outputs_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
