/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"

/*
 * Lines that are not messages, from both sides: who is told about them, and that the session goes
 * on.
 */
enum { MAX_MESSAGE = 4096 };

static int set_up_lines(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	profile_of(fixture)->max_message = MAX_MESSAGE;
	return 0;
}

/* A text that makes any message too long. */
static const char *long_text(void)
{
	static char text[MAX_MESSAGE + 1];
	memset(text, 'x', MAX_MESSAGE);
	return text;
}

static void editor_writes_line(struct fixture *fixture, const char *line)
{
	editor_writes(fixture, span_of(line));
	editor_writes(fixture, SPAN_LITERAL("\n"));
}

static void agent_writes_line(struct fixture *fixture, const char *line)
{
	agent_writes(fixture, 0, span_of(line));
	agent_writes(fixture, 0, SPAN_LITERAL("\n"));
}

static void assert_goes_on(struct fixture *fixture)
{
	editor_hears_nothing(fixture);
	agent_hears_nothing(fixture, 0);
	editor_says(fixture, "'method':'_on'");
	agent_hears(fixture, 0, "'method':'_on'");
	agent_says(fixture, 0, "'method':'_on'");
	editor_hears(fixture, "'method':'_on'");
}

/* ---- from the editor ---- */

static void test_an_editors_broken_line_is_answered(void **state)
{
	static const struct {
		const char *line;
		const char *id;
		const char *code;
		const char *words;
	} cases[] = {
		{"not JSON", "null", "PARSE_ERROR", "-32700"},
		{"{\"id\":7,\"method\":\"_x\",}", "7", "PARSE_ERROR", "-32700"},
		{"{\"id\":\"q\",\"method\":\"_x\",\"params\":[1", "\"q\"", "PARSE_ERROR", "-32700"},
		{"{\"method\":\"_x\",\"id\":7", "null", "PARSE_ERROR", "-32700"},
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}", "7", "PARSE_ERROR",
			"-32700"},
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"id\":8,\"method\":\"_x\"}", "7", "PARSE_ERROR",
			"-32700"},
		{"[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"_x\"}]", "null", "INVALID_MESSAGE",
			"-32600"},
		{"[]", "null", "INVALID_MESSAGE", "batches"},
		{"7", "null", "INVALID_MESSAGE", "not a JSON object"},
		{"{}", "null", "INVALID_MESSAGE", "-32600"},
		{"{\"id\":7,\"method\":\"_x\"}", "7", "INVALID_MESSAGE", "jsonrpc"},
		{"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"_x\"}", "null", "INVALID_MESSAGE",
			"\\\"id\\\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":1}", "7", "INVALID_MESSAGE",
			"\\\"method\\\""},
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"_x\",\"params\":1}", "7",
			"INVALID_MESSAGE", "\\\"params\\\""},
	};
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		editor_writes_line(fixture, cases[i].line);
		editor_hears_failure(fixture, cases[i].id, cases[i].code, "relay", cases[i].words);
	}
	assert_goes_on(fixture);
}

static void test_blank_lines_are_no_lines(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_writes(fixture, SPAN_LITERAL("\n\r\n  \t\r\n"));
	agent_writes(fixture, 0, SPAN_LITERAL("\n\r\n  \t\r\n"));
	assert_goes_on(fixture);
}

static void test_an_editors_request_that_is_too_long_is_answered(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':7,'method':'_x','params':{'t':'%s'}", long_text());
	editor_hears_failure(fixture, "7", "MESSAGE_TOO_LONG", "relay", "the maximum is 4096");
	editor_says(fixture, "'params':{'t':'%s'},'method':'_x','id':'last'", long_text());
	editor_hears_failure(fixture, "\"last\"", "MESSAGE_TOO_LONG", "relay", "4096");
	editor_says(fixture, "'params':{'t':'%s'},'method':'_x'", long_text());
	assert_goes_on(fixture); // a notification: nobody is answered
}

/* The agent waits for that answer, so it gets an error instead. */
static void test_an_editors_answer_that_cannot_be_used_fails_the_agents_request(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	for (int i = 0; i < 4; i++) {
		agent_says(fixture, 0, "'id':'a%d','method':'_x'", i);
		editor_hears(fixture, "'id':%d,'method':'_x'", i);
	}
	editor_says(fixture, "'result':{'t':'%s'},'id':0", long_text());
	agent_hears_failure(fixture, 0, "\"a0\"", "MESSAGE_TOO_LONG", "relay", "4096");
	editor_writes_line(fixture, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{]");
	agent_hears_failure(fixture, 0, "\"a1\"", "PARSE_ERROR", "relay", "byte");
	editor_says(fixture, "'id':2,'result':1,'error':{}");
	agent_hears_failure(fixture, 0, "\"a2\"", "INVALID_MESSAGE", "relay", "exactly one");
	editor_writes_line(fixture, "{\"id\":3,\"result\":1}");
	agent_hears_failure(fixture, 0, "\"a3\"", "INVALID_MESSAGE", "relay", "jsonrpc");
	assert_goes_on(fixture);
}

/* An answer would answer another request of the editor's, which has the same id. */
static void test_an_editors_broken_answer_to_nothing_is_not_answered(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_writes_line(fixture, "{\"id\":5,\"result\":1}");
	editor_writes_line(fixture, "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{},\"result\":1}");
	editor_writes_line(fixture, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":1,}");
	editor_says(fixture, "'id':5,'result':'%s'", long_text());
	assert_goes_on(fixture);
}

/* ---- from an agent ---- */

static void test_an_agents_noise_never_reaches_the_editor(void **state)
{
	static const char *const lines[] = {"Welcome back!", "\x1b[31mred", "[1,2]", "42",
		"\"text\"", "null", "{}", "{\"level\":\"info\",\"id\":7}", "{\"jsonrpc\":\"2.0\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":1,\"error\":{}}",
		"{\"jsonrpc\":\"2.0\",\"method\":7}", "{\"broken\":", "\xff\xfe"};
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		agent_writes_line(fixture, lines[i]);
	}
	assert_goes_on(fixture);
}

static void test_an_agents_answer_that_cannot_be_used_fails_the_editors_request(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	for (int i = 0; i < 4; i++) {
		editor_says(fixture, "'id':'e%d','method':'_x'", i);
		agent_hears(fixture, 0, "'id':%d,'method':'_x'", i + 1);
	}
	agent_says(fixture, 0, "'result':{'t':'%s'},'id':1", long_text());
	editor_hears_failure(fixture, "\"e0\"", "MESSAGE_TOO_LONG", "relay", "4096");
	agent_writes_line(fixture, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{]");
	editor_hears_failure(fixture, "\"e1\"", "INVALID_MESSAGE", "relay", "cannot be used");
	agent_says(fixture, 0, "'id':3,'result':1,'error':{}");
	editor_hears_failure(fixture, "\"e2\"", "INVALID_MESSAGE", "relay", "exactly one");
	agent_writes_line(fixture, "{\"id\":4,\"result\":1}");
	editor_hears_failure(fixture, "\"e3\"", "INVALID_MESSAGE", "relay", "jsonrpc");
	assert_goes_on(fixture);
}

static void test_an_agents_request_that_cannot_be_used_is_answered(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	agent_says(fixture, 0, "'id':'a','method':'_x','params':{'t':'%s'}", long_text());
	agent_hears_failure(fixture, 0, "\"a\"", "MESSAGE_TOO_LONG", "relay", "4096");
	agent_says(fixture, 0, "'id':'b','method':'_x','params':7");
	agent_hears_failure(fixture, 0, "\"b\"", "INVALID_MESSAGE", "relay", "params");
	agent_writes_line(fixture, "{\"jsonrpc\":\"2.0\",\"id\":\"c\",\"method\":\"_x\",}");
	agent_hears_failure(fixture, 0, "\"c\"", "INVALID_MESSAGE", "relay", "not understood");
	agent_says(fixture, 0, "'method':'session/update','params':{'t':'%s'}", long_text());
	assert_goes_on(fixture);
}

static void test_an_answer_to_initialize_that_cannot_be_used_is_told(void **state)
{
	struct fixture *fixture = *state;
	begin(fixture);
	editor_says(fixture, "'id':'i',%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	agent_writes_line(fixture, "starting up");
	agent_says(fixture, 0, "'id':0,'result':'%s'", long_text());
	editor_hears_failure(fixture, "\"i\"", "MESSAGE_TOO_LONG", "relay", "4096");
}

#define LINES_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_lines, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LINES_TEST(test_an_editors_broken_line_is_answered),
		LINES_TEST(test_blank_lines_are_no_lines),
		LINES_TEST(test_an_editors_request_that_is_too_long_is_answered),
		LINES_TEST(test_an_editors_answer_that_cannot_be_used_fails_the_agents_request),
		LINES_TEST(test_an_editors_broken_answer_to_nothing_is_not_answered),
		LINES_TEST(test_an_agents_noise_never_reaches_the_editor),
		LINES_TEST(test_an_agents_answer_that_cannot_be_used_fails_the_editors_request),
		LINES_TEST(test_an_agents_request_that_cannot_be_used_is_answered),
		LINES_TEST(test_an_answer_to_initialize_that_cannot_be_used_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
