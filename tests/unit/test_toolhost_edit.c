/* SPDX-License-Identifier: MIT */
#include "tests/unit/display_fixture.h"

/* An editor that shows terminals by _meta. */
static int set_up_meta(void **state)
{
	int failed = fixture_set_up(state);
	fixture.editor_shows_terminals = true;
	fixture_open();
	return failed;
}

/* Expects this text in the place of `meta` and `content` of a tool_call. */
static void expect_announced(const char *before, const char *after)
{
	char message[600];
	char expected[600];
	static const char format[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":"
		"{\"sessionId\":\"s1\",\"update\":{%s\"sessionUpdate\":"
		"\"tool_call\",\"toolCallId\":\"t1\",\"content\":[%s]}}}";
	snprintf(message, sizeof(message), format, before, TERMINAL("term-1"));
	snprintf(expected, sizeof(expected), format, after, TERMINAL("term-1"));
	assert_string_equal(edited(message, NULL, NULL), expected);
}

static const char *info(const char *before, const char *after)
{
	static char text[300];
	snprintf(text, sizeof(text),
		"%s\"terminal_info\":{\"terminal_id\":\"term-1\",\"cwd\":\"%s\"}%s", before,
		fixture.root, after);
	return text;
}

static void test_a_tool_call_announces_its_terminal(void **state)
{
	create("true");
	expect_announced("", info("\"_meta\":{", "},"));
}

static void test_the_announcement_joins_what_is_there(void **state)
{
	create("true");
	expect_announced("\"_meta\": {\"a\":1},", info("\"_meta\": {", ",\"a\":1},"));
}

static void test_the_announcement_takes_the_place_of_nothing(void **state)
{
	create("true");
	expect_announced("\"_meta\":null,", info("\"_meta\":{", "},"));
}

static void test_the_announcement_fits_an_empty_meta(void **state)
{
	create("true");
	expect_announced("\"_meta\":{ },", info("\"_meta\":{", " },"));
}

static void test_the_editor_is_told_all_output_and_the_end(void **state)
{
	create("printf 'a\\\\303'; sleep 0.15; printf '\\\\244b'; " UNTIL_GO "echo c; exit 3");
	edited(call_of_one, NULL, NULL);
	fixture_run_for(300);
	let_go();
	wait_for_told_exit("term-1");
	assert_string_equal(all_told("term-1"), "a\xc3\xa4"
						"bc\n");
	const struct update *last = last_update();
	assert_string_equal(update_string(last, "params.update.sessionUpdate"), "tool_call_update");
	assert_string_equal(update_string(last, "params.update.toolCallId"), "t1");
	assert_string_equal(update_string(last, "params.sessionId"), "s1");
	assert_null(strstr(last->text, "\"content\""));
	assert_non_null(strstr(last->text, "\"terminal_exit\":{\"terminal_id\":\"term-1\","
					   "\"exit_code\":3,\"signal\":null}"));
	/* When it is shown once more, it is already known. */
	assert_string_equal(edited(call_of_one, NULL, NULL), call_of_one);
	assert_string_equal(edited(update_of_one, NULL, NULL), update_of_one);
	expect_no_more(fixture.update_count);
	result_of(ask("terminal/release", "\"terminalId\":\"term-1\""));
	fixture_run_for(50);
	assert_string_equal(edited(update_of_one, NULL, NULL), update_of_one);
}

static void test_much_output_is_told_whole_at_most_ten_times_a_second(void **state)
{
	create("for i in 1 2 3 4 5 6 7 8; do head -c 100000 /dev/zero | tr '\\\\0' $i; sleep 0.05; "
	       "done");
	edited(call_of_one, NULL, NULL);
	wait_for_told_exit("term-1");
	const char *told = all_told("term-1");
	assert_int_equal(strlen(told), 800000);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(told[i * 100000], '1' + i);
		assert_int_equal(told[i * 100000 + 99999], '1' + i);
	}
	for (int i = 1; i < fixture.update_count; i++) {
		assert_true(fixture.updates[i].at - fixture.updates[i - 1].at > 0.099);
	}
}

static void test_what_could_not_be_told_in_time_is_said(void **state)
{
	fixture.limits.output_limit = 1000;
	fixture_open();
	create("head -c 5000 /dev/zero | tr '\\\\0' x");
	edited(call_of_one, NULL, NULL);
	finish("term-1");
	wait_for_told_exit("term-1");
	const char *told = all_told("term-1");
	assert_non_null(strstr(told, " bytes are not shown)\n"));
	assert_int_equal(strspn(told + strlen(told) - 1000, "x"), 1000);
}

static void test_output_after_the_exit_is_told_too(void **state)
{
	create("(" UNTIL_GO "echo later) & echo now");
	edited(call_of_one, NULL, NULL);
	wait_for_told_exit("term-1");
	assert_string_equal(all_told("term-1"), "now\n");
	let_go();
	int seen = fixture.update_count;
	next_update(&seen);
	assert_string_equal(all_told("term-1"), "now\nlater\n");
	expect_no_more(seen);
}

static bool has_been_told(const void *data)
{
	for (int i = 0; i < fixture.update_count; i++) {
		if (strstr(fixture.updates[i].text, data)) {
			return true;
		}
	}
	return false;
}

static void test_an_update_announces_and_shows_text_as_well(void **state)
{
	create(UNTIL_GO "echo a");
	const char *text = edited(update_of_one, NULL, NULL);
	assert_non_null(strstr(text, info("\"update\":{\"_meta\":{", "},\"sessionUpdate\"")));
	assert_non_null(strstr(text, "\"content\":[" TEXT("(no output yet)") "]"));
	let_go();
	wait_for_told_exit("term-1");
	assert_string_equal(all_told("term-1"), "a\n");
	assert_true(fixture_turn(has_been_told, "```\\na\\n```", FIXTURE_DEADLINE_MS));
	assert_string_equal(item_text(last_update(), 0), "```\na\n```");
}

static void test_only_one_terminal_is_announced_by_a_message(void **state)
{
	create("true");
	create(UNTIL_GO "echo two");
	const char *text =
		edited(UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t1\",\"content\":"
			      "[" TERMINAL("term-1") "," TERMINAL("term-2") "]"),
			NULL, NULL);
	assert_non_null(
		strstr(text, "\"content\":[" TERMINAL("term-1") "," TEXT("(no output yet)") "]"));
	assert_non_null(strstr(text, "\"terminal_id\":\"term-1\""));
	wait_for_told_exit("term-1");
	let_go();
	int seen = fixture.update_count;
	const struct update *update = next_update(&seen);
	assert_non_null(strstr(
		update->text, "\"content\":[" TERMINAL("term-1") "," TEXT("```\\ntwo\\n```") "]"));
}

static void test_a_slow_editor_is_told_everything_once(void **state)
{
	create("for i in 1 2 3 4 5 6; do echo $i; sleep 0.05; done");
	edited(call_of_one, NULL, NULL);
	for (int i = 0; i < 10; i++) {
		fixture.editor_is_slow = i % 2 == 0;
		fixture_run_for(70);
	}
	fixture.editor_is_slow = false;
	wait_for_told_exit("term-1");
	assert_string_equal(all_told("term-1"), "1\n2\n3\n4\n5\n6\n");
}

static void test_the_end_of_a_session_ends_what_the_editor_shows(void **state)
{
	create("sleep 1000");
	edited(call_of_one, NULL, NULL);
	toolhost_end_session(fixture.toolhost, "s1");
	assert_int_equal(fixture.update_count, 1);
	assert_non_null(strstr(last_update()->text,
		"\"_meta\":{\"terminal_exit\":{\"terminal_id\":\"term-1\",\"exit_code\":null,"
		"\"signal\":null}}"));
}

static void test_a_toolhost_can_go_while_it_shows(void **state)
{
	create("sleep 1000");
	create("true");
	edited(call_of_one, NULL, NULL);
	finish("term-2");
	edited(UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t2\",\"content\":"
		      "[" TERMINAL("term-1") "," TERMINAL("term-2") "]"),
		NULL, NULL);
	result_of(ask("terminal/release", "\"terminalId\":\"term-2\""));
}

/* The editor gets the cwd by the name that it knows. */
static void test_the_directory_is_told_as_the_editor_knows_it(void **state)
{
	fixture.editor_shows_terminals = true;
	fixture_open();
	assert_int_equal(mkdir(local_path("sub"), 0755), 0);
	result_of(ask(
		"terminal/create", "\"command\":\"true\",\"cwd\":\"%s/sub\"", fixture.roots[0]));
	char expected[300];
	snprintf(expected, sizeof(expected), "\"cwd\":\"%s/sub\"", fixture.root);
	const char *text = edited(call_of_one, NULL, NULL);
	assert_non_null(strstr(text, expected));
	assert_null(strstr(text, fixture.roots[0]));
}

#define BY_META(test) cmocka_unit_test_setup_teardown(test, set_up_meta, fixture_tear_down)

/*
 * A question has shown the terminal as text. After its release, it becomes a terminal of the
 * editor's.
 */
static void test_what_was_text_before_loses_nothing_when_it_is_announced(void **state)
{
	static const char question[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/request_permission\","
		"\"params\":{\"sessionId\":\"s1\",\"options\":[],\"toolCall\":{"
		"\"toolCallId\":\"t1\",\"content\":[" TERMINAL("term-1") "]}}}";
	create("echo told; (" UNTIL_END ") &"); // its output stays open
	assert_non_null(strstr(edited(question, NULL, NULL), "\"text\""));
	finish("term-1");
	fixture_run_for(300); // the display of the question has shown everything
	expect_result(terminal_ask("release", "term-1"), "{}");
	assert_non_null(strstr(edited(call_of_one, NULL, NULL), "terminal_info"));
	wait_for_told_exit("term-1");
	assert_string_equal(all_told("term-1"), "told\n");
	let_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BY_META(test_a_tool_call_announces_its_terminal),
		BY_META(test_the_announcement_joins_what_is_there),
		BY_META(test_the_announcement_takes_the_place_of_nothing),
		BY_META(test_the_announcement_fits_an_empty_meta),
		BY_META(test_the_editor_is_told_all_output_and_the_end),
		BY_META(test_much_output_is_told_whole_at_most_ten_times_a_second),
		BY_META(test_what_could_not_be_told_in_time_is_said),
		BY_META(test_output_after_the_exit_is_told_too),
		BY_META(test_an_update_announces_and_shows_text_as_well),
		BY_META(test_only_one_terminal_is_announced_by_a_message),
		BY_META(test_a_slow_editor_is_told_everything_once),
		BY_META(test_the_end_of_a_session_ends_what_the_editor_shows),
		BY_META(test_a_toolhost_can_go_while_it_shows),
		BY_META(test_what_was_text_before_loses_nothing_when_it_is_announced),
		ON_FAKE(test_the_directory_is_told_as_the_editor_knows_it),
	};
	return fixture_run(tests, ARRAY_LENGTH(tests));
}
