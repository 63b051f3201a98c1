/* SPDX-License-Identifier: MIT */
#include "tests/unit/grant_fixture.h"
#include "tests/support/facts.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the broker's own questions show. */

#define ASKS "acp-broker asks because of `mode = ask-all`"

static void assert_contains(const char *line, const char *begin, const char *rest)
{
	const char *at = strstr(line, begin);
	if (!at || strncmp(at + strlen(begin), rest, strlen(rest)) != 0 ||
		at[strlen(begin) + strlen(rest)] != '"') {
		fail_msg("%s%s is not in %s", begin, rest, line);
	}
}

static void test_a_write_is_asked_about_with_its_text(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	agent_says(fixture, 0, "'id':'w'," WRITE_REQUEST);
	editor_hears(fixture,
		"'id':0,'method':'session/request_permission','params':{'sessionId':'s',"
		"'toolCall':{'toolCallId':'acp-broker-0','title':'" ASKS ": Write `/w/f`',"
		"'kind':'edit','status':'pending','locations':[{'path':'/w/f'}],"
		"'content':[{'type':'diff',"
		"'path':'/w/f','newText':'new'}]},'options':" OPTIONS_ALWAYS "}");
	agent_hears_nothing(fixture, 0);
}

static void test_a_command_is_asked_about_with_its_words(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	agent_says(fixture, 0,
		"'id':'t','method':'terminal/create','params':{'sessionId':'s','command':'make',"
		"'args':['all']}");
	editor_hears(fixture,
		"'id':0,'method':'session/request_permission','params':{'sessionId':'s',"
		"'toolCall':{'toolCallId':'acp-broker-0','title':'" ASKS ": Run `make all`',"
		"'kind':'execute','status':'pending','content':[{'type':'content','content':{"
		"'type':'text','text':'```\\nmake all\\n```'}}]},'options':" OPTIONS_ALWAYS "}");
}

/*
 * The user must see all of a command: the words are separate, and none looks like something else.
 */
static void test_nothing_of_a_command_is_hidden(void **state)
{
	static const struct {
		const char *command; // the members of params
		const char *title;
		const char *text;
	} cases[] = {
		{"'command':'rm','args':['-rf','a b','']", "`rm -rf 'a b' ''`",
			"```\\nrm -rf 'a b' ''\\n```"},
		{"'command':'rm -rf ~ <!-- -->'", "`rm -rf ~ <!-- -->`",
			"```\\nrm -rf ~ <!-- -->\\n```"},
		{"'command':'true\\n```\\n\\nin `/safe`'",
			"```` true\\\\n```\\\\n\\\\nin `/safe` ````",
			"````\\ntrue\\n```\\n\\nin `/safe`\\n````"},
		{"'command':'a\\u202eb'", "`a<U+202E>b`", "```\\na<U+202E>b\\n```"},
		{"'command':'ls','cwd':'/a`*b*'", "`ls`", "```\\nls\\n```\\n\\nin ``/a`*b*``"},
	};
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		agent_says(fixture, 0,
			"'id':'t','method':'terminal/create','params':{'sessionId':'s',"
			"%s}",
			cases[i].command);
		char *line = editor_line(fixture);
		assert_contains(line, "\"title\":\"" ASKS ": Run ", cases[i].title);
		assert_contains(line, "\"text\":\"", cases[i].text);
		free(line);
	}
}

static void test_a_title_says_what_it_leaves_out(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	agent_says(fixture, 0,
		"'id':'t','method':'terminal/create','params':{'sessionId':'s',"
		"'command':'true %0600d; rm'}",
		0);
	char *line = editor_line(fixture);
	assert_non_null(strstr(line, "0` … and 97 bytes more\",\"kind\""));
	assert_non_null(strstr(line, "0; rm\\n```"));
	free(line);
}

/* ---- the content of the file ---- */

static char path[64];

static int set_up_file(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	fixture->pool = pool_create(fixture->stage.loop);
	snprintf(path, sizeof(path), "/tmp/test-grant-question-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old \"text\"\n", 11), 11);
	close(fd);
	return 0;
}

static int tear_down_file(void **state)
{
	unlink(path);
	return tear_down(state);
}

static void ask_to_write(struct fixture *fixture)
{
	agent_says(fixture, 0,
		"'id':'w','method':'fs/write_text_file','params':{'sessionId':'s','path':'%s',"
		"'content':'new'}",
		path);
}

/* Takes the note before the diff out of the question, and compares its facts. */
static void check_note(char *line, const char *facts)
{
	static const char begin[] =
		"{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"";
	static const char finish[] = "\"}},";
	char *note = strstr(line, begin);
	assert_int_equal(note != NULL, facts != NULL);
	if (note) {
		char *end = strstr(note, finish);
		assert_non_null(end);
		*end = '\0';
		assert_names(note + strlen(begin), facts);
		end += strlen(finish);
		memmove(note, end, strlen(end) + 1);
	}
}

/*
 * `diff` stands before the diff's other members; `note` is what the text before it says, or NULL.
 */
static void hear_question(struct fixture *fixture, const char *note, const char *diff)
{
	char *line = editor_line(fixture);
	assert_non_null(line);
	check_note(line, note);
	assert_message(line,
		"'id':0,'method':'session/request_permission','params':{'sessionId':'s',"
		"'toolCall':{'toolCallId':'acp-broker-0','title':'" ASKS ": Write `%s`',"
		"'kind':'edit','status':'pending','locations':[{'path':'%s'}],'content':[{%s'"
		"type':'diff',"
		"'path':'%s','newText':'new'}]},'options':" OPTIONS_ALWAYS "}",
		path, path, diff, path);
}

static void begin_question(struct fixture *fixture)
{
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	ask_to_write(fixture);
}

static void test_a_write_is_shown_with_what_the_file_holds(void **state)
{
	struct fixture *fixture = *state;
	begin_question(fixture);
	hear_question(fixture, NULL, "'oldText':'old \\\"text\\\"\\n',");
	editor_says(
		fixture, "'id':0,'result':{'outcome':{'outcome':'selected','optionId':'allow'}}");
	editor_hears(fixture,
		"'method':'session/update','params':{'sessionId':'s','update':{"
		"'sessionUpdate':'tool_call_update','toolCallId':'acp-broker-0',"
		"'title':'" ASKS ": Write `%s`','status':'completed'}}",
		path);
	editor_hears(fixture,
		"'id':1,'method':'fs/write_text_file','params':{'sessionId':'s','path':'%s',"
		"'content':'new'}",
		path);
}

static void test_a_new_file_holds_null(void **state)
{
	struct fixture *fixture = *state;
	unlink(path);
	begin_question(fixture);
	hear_question(fixture, NULL, "'oldText':null,");
}

static void test_what_is_no_text_is_not_shown_and_that_is_said(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(truncate(path, 0), 0);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fwrite("\xff\xfe", 1, 2, file) == 2 && fclose(file) == 0);
	begin_question(fixture);
	hear_question(fixture, "not shown | not text", "");
}

/* ---- while it is being read ---- */

static void begin_held(struct fixture *fixture)
{
	close_gate(fixture);
	begin_question(fixture);
	editor_hears_nothing(fixture);
	let_one_pass(fixture); // the links in its path are resolved
	editor_hears_nothing(fixture);
}

static void test_a_cancelled_session_asks_nothing_any_more(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears_failure(fixture, 0, "\"w\"", "PERMISSION_DENIED", "session", "was cancelled");
	open_gate();
	editor_hears_nothing(fixture);
}

static void test_what_the_agent_took_back_is_not_asked_any_more(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture);
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{'requestId':'w'}");
	agent_hears_failure(
		fixture, 0, "\"w\"", "PERMISSION_DENIED", "session", "taken its request back");
	open_gate();
	editor_hears_nothing(fixture);
}

static void test_a_dead_agent_asks_nothing_any_more(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture);
	agent_dies(fixture, 0);
	open_gate();
	editor_hears_nothing(fixture);
}

static void test_it_can_be_destroyed_while_a_file_is_read(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture);
	relay_destroy(fixture->relay);
	fixture->relay = NULL;
	open_gate();
}

static void test_a_file_that_is_slow_is_asked_about_without_its_text(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture);
	hear_question(fixture, "not shown | too long", "");
	open_gate();
	editor_hears_nothing(fixture);
}

#define FILE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_file, tear_down_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_a_write_is_asked_about_with_its_text),
		RELAY_TEST(test_a_command_is_asked_about_with_its_words),
		RELAY_TEST(test_nothing_of_a_command_is_hidden),
		RELAY_TEST(test_a_title_says_what_it_leaves_out),
		FILE_TEST(test_a_write_is_shown_with_what_the_file_holds),
		FILE_TEST(test_a_new_file_holds_null),
		FILE_TEST(test_what_is_no_text_is_not_shown_and_that_is_said),
		FILE_TEST(test_a_cancelled_session_asks_nothing_any_more),
		FILE_TEST(test_what_the_agent_took_back_is_not_asked_any_more),
		FILE_TEST(test_a_dead_agent_asks_nothing_any_more),
		FILE_TEST(test_it_can_be_destroyed_while_a_file_is_read),
		FILE_TEST(test_a_file_that_is_slow_is_asked_about_without_its_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
