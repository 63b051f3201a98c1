/* SPDX-License-Identifier: MIT */
#include "tests/unit/display_fixture.h"
#include "tests/support/facts.h"

static void test_a_terminal_becomes_text_and_nothing_else_changes(void **state)
{
	create(UNTIL_GO);
	assert_string_equal(
		edited(UPDATE("\"sessionUpdate\": \"tool_call\" , \"content\":[ "
			      "{\"type\":\"content\","
			      "\"content\":{\"type\":\"text\",\"text\":\"\\u0061\"}} ,"
			      " {\"terminalId\":\"term-\\u0031\", \"type\":\"terminal\" } ],"
			      "\"toolCallId\":\"t1\",\"x\":1e3"),
			NULL, NULL),
		UPDATE("\"sessionUpdate\": \"tool_call\" , \"content\":[ {\"type\":\"content\","
		       "\"content\":{\"type\":\"text\",\"text\":\"\\u0061\"}} , " TEXT(
			       "(no output yet)") " ],\"toolCallId\":\"t1\",\"x\":1e3"));
	expect_no_more(0);
}

static void test_the_text_follows_the_output_to_the_end(void **state)
{
	int seen = 0;
	create(UNTIL_GO "echo one; " UNTIL_END "echo two; exit 3");
	assert_string_equal(edited(update_of_one, NULL, NULL),
		UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\","
		       "\"content\":[" TEXT("(no output yet)") "]"));
	let_go();
	const struct update *update = next_update(&seen);
	assert_string_equal(
		update->text, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\","
				     "\"content\":[" TEXT("```\\none\\n```") "]"));
	let_end();
	finish("term-1");
	const char *words = "```\none\ntwo\n```\n\nThe command exited with status 3.";
	do {
		update = next_update(&seen);
	} while (!strstr(item_text(update, 0), "status"));
	assert_string_equal(item_text(update, 0), words);
	expect_no_more(seen);
}

static void test_what_is_shown_late_is_shown_once(void **state)
{
	create("echo done");
	finish("term-1");
	assert_non_null(strstr(edited(update_of_one, NULL, NULL), "\"```\\ndone\\n```\""));
	create("true");
	finish("term-2");
	assert_non_null(strstr(edited(UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":"
					     "\"t2\",\"content\":[" TERMINAL("term-2") "]"),
				       NULL, NULL),
		"\"(no output)\""));
	create("yes 0123456 | head -c 100000; echo end");
	finish("term-3");
	assert_non_null(strstr(edited(UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":"
					     "\"t3\",\"content\":[" TERMINAL("term-3") "]"),
				       NULL, NULL),
		"what came before"));
	int seen = 0;
	assert_int_equal(strlen(item_text(next_update(&seen), 0)), 4 + 100004 + 3);
	expect_no_more(seen);
}

static void test_other_content_is_kept_as_the_editor_got_it(void **state)
{
	int seen = 0;
	create(UNTIL_GO "echo later");
	edited(UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t\\u0031\","
		      "\"content\":["
		      "{\"type\":\"diff\",\"path\":\"/far/a\",\"newText\":\"\\u00e4\"}," TERMINAL(
			      "term-1") "," TEXT("after") "]"),
		"/far", "/near/by");
	let_go();
	finish("term-1");
	assert_string_equal(next_update(&seen)->text,
		UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t\\u0031\","
		       "\"content\":["
		       "{\"type\":\"diff\",\"path\":\"/near/by/a\",\"newText\":\"\\u00e4\"}," TEXT(
			       "```\\nlater\\n```") "," TEXT("after") "]"));
	expect_no_more(seen);
}

static void test_several_terminals_of_one_call_come_together(void **state)
{
	int seen = 0;
	create(UNTIL_GO "echo one");
	create(UNTIL_GO "echo two");
	edited(UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t1\",\"content\":"
		      "[" TERMINAL("term-1") "," TERMINAL("term-2") "]"),
		NULL, NULL);
	let_go();
	finish("term-1");
	finish("term-2");
	const struct update *update;
	do {
		update = next_update(&seen);
	} while (strstr(update->text, "no output"));
	expect_no_more(seen);
	assert_string_equal(item_text(update, 0), "```\none\n```");
	assert_string_equal(item_text(update, 1), "```\ntwo\n```");
}

static void test_at_most_ten_updates_a_second_and_the_last_state_always(void **state)
{
	int seen = 0;
	create(UNTIL_GO "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo $i; "
			"sleep 0.02; done; " UNTIL_END "echo last");
	double shown_at = ev_now(fixture.loop);
	edited(update_of_one, NULL, NULL);
	let_go();
	next_update(&seen);
	let_end();
	while (!strstr(item_text(next_update(&seen), 0), "last")) {
	}
	expect_no_more(seen);
	for (int i = 0; i < fixture.update_count; i++) {
		double before = i > 0 ? fixture.updates[i - 1].at : shown_at;
		assert_true(fixture.updates[i].at - before > 0.099);
	}
	assert_non_null(strstr(item_text(last_update(), 0), "20\nlast\n```"));
}

static void test_an_editor_that_is_slow_gets_the_last_state_later(void **state)
{
	create(UNTIL_GO "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done");
	edited(update_of_one, NULL, NULL);
	fixture.editor_is_slow = true;
	let_go();
	finish("term-1");
	result_of(ask("terminal/release", "\"terminalId\":\"term-1\""));
	fixture_run_for(130);
	assert_int_equal(fixture.update_count, 0);
	fixture.editor_is_slow = false;
	int seen = 0;
	assert_string_equal(item_text(next_update(&seen), 0), "```\n1\n2\n3\n4\n5\n```");
	expect_no_more(seen);
}

static void test_content_that_the_agent_replaces_is_not_brought_back(void **state)
{
	create(UNTIL_GO "echo later");
	edited(update_of_one, NULL, NULL);
	const char *replaced =
		UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\","
		       "\"content\":[" TEXT("done") "]");
	assert_string_equal(edited(replaced, NULL, NULL), replaced);
	let_go();
	finish("term-1");
	expect_no_more(0);
}

static void test_updates_without_content_change_nothing(void **state)
{
	int seen = 0;
	create(UNTIL_GO "echo later");
	edited(update_of_one, NULL, NULL);
	static const char *const others[] = {
		UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\",\"status\":"
		       "\"completed\""),
		UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\",\"content\":"
		       "null"),
		UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t2\",\"content\":["
		       "]"),
		UPDATE("\"sessionUpdate\":\"agent_message_chunk\",\"content\":" TERMINAL("term-1")),
		UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t3\",\"content\":"
		       "[" TERMINAL("term-2") "," TERMINAL("x") "]"),
	};
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		assert_string_equal(edited(others[i], NULL, NULL), others[i]);
	}
	let_go();
	assert_string_equal(item_text(next_update(&seen), 0), "```\nlater\n```");
}

static void test_a_terminal_of_another_session_is_not_shown(void **state)
{
	create("echo secret");
	finish("term-1");
	const char *other = "{\"jsonrpc\":\"2.0\",\"method\":\"session/"
			    "update\",\"params\":{\"sessionId\":\"s2\","
			    "\"update\":{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t1\","
			    "\"content\":[" TERMINAL("term-1") "]}}}";
	assert_string_equal(edited(other, NULL, NULL), other);
	expect_no_more(0);
}

static void test_a_released_terminal_is_followed_to_its_end(void **state)
{
	int seen = 0;
	create(UNTIL_GO "echo started; sleep 1000");
	edited(update_of_one, NULL, NULL);
	let_go();
	next_update(&seen);
	result_of(ask("terminal/release", "\"terminalId\":\"term-1\""));
	const char *shown = item_text(next_update(&seen), 0);
	assert_int_equal(strncmp(shown, "```\nstarted\n```\n\n", 17), 0);
	assert_names(shown, "killed by SIGKILL");
	expect_no_more(seen);
	/* An agent that lists all its content may show the terminal again. */
	assert_non_null(strstr(edited(update_of_one, NULL, NULL), "```\\nstarted\\n```\\n\\nThe "));
	expect_no_more(seen);
}

static void test_a_fence_is_longer_than_any_in_the_output(void **state)
{
	create("echo 'a```` b'; printf '```\\\\nend'");
	finish("term-1");
	assert_non_null(strstr(
		edited(update_of_one, NULL, NULL), "\"`````\\na```` b\\n```\\nend\\n`````\""));
}

static void test_much_output_grows_by_its_end_and_ends_whole(void **state)
{
	int seen = 0;
	create(UNTIL_GO "yes 0123456 | head -c 100000; " UNTIL_END "echo end");
	edited(update_of_one, NULL, NULL);
	let_go();
	const char *text;
	do {
		text = item_text(next_update(&seen), 0);
	} while (!strstr(text, "0123456"));
	assert_non_null(strstr(text, "not shown)\n\n```\n"));
	assert_true(strlen(text) < 20000);
	let_end();
	finish("term-1");
	do {
		text = item_text(next_update(&seen), 0);
	} while (!strstr(text, "end"));
	assert_true(strlen(text) > 100000);
	expect_no_more(seen);
}

static void test_a_question_shows_it_too(void **state)
{
	create("echo done");
	finish("term-1");
	const char *text =
		edited("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/request_permission\","
		       "\"params\":{\"sessionId\":\"s1\",\"options\":[],\"toolCall\":{"
		       "\"toolCallId\":\"t1\",\"content\":[" TERMINAL("term-1") "]}}}",
			NULL, NULL);
	assert_non_null(strstr(text, "\"content\":[" TEXT("```\\ndone\\n```") "]}}}"));
}

/* Shows a terminal that has printed "started", of which the editor has not been told yet. */
static void show_started(void)
{
	create(UNTIL_GO "echo started; sleep 1000");
	edited(update_of_one, NULL, NULL);
	let_go();
	while (!strstr(member_of(ask("terminal/output", "\"terminalId\":\"term-1\""), "output"),
		"started")) {
		fixture_run_for(5);
	}
}

static void test_the_end_of_a_session_sends_the_last_state(void **state)
{
	show_started();
	toolhost_end_session(fixture.toolhost, "s1");
	assert_int_equal(fixture.update_count, 1);
	assert_string_equal(item_text(last_update(), 0), "```\nstarted\n```");
	expect_no_more(1);
}

static void test_the_end_of_the_agent_sends_the_last_state_of_every_session(void **state)
{
	show_started();
	toolhost_show_last(fixture.toolhost);
	assert_int_equal(fixture.update_count, 1);
	assert_string_equal(item_text(last_update(), 0), "```\nstarted\n```");
	expect_no_more(1);
	toolhost_show_last(fixture.toolhost);
	assert_int_equal(fixture.update_count, 1);
}

static void test_what_is_pending_can_be_shown_at_once(void **state)
{
	create(UNTIL_GO "echo one; " UNTIL_END "exit 1");
	edited(update_of_one, NULL, NULL);
	let_go();
	while (!strstr(
		member_of(ask("terminal/output", "\"terminalId\":\"term-1\""), "output"), "one")) {
		fixture_run_for(1);
	}
	toolhost_flush_session(fixture.toolhost, "s2");
	toolhost_flush_session(fixture.toolhost, "s1");
	assert_int_equal(fixture.update_count, 1);
	assert_string_equal(item_text(last_update(), 0), "```\none\n```");
	toolhost_flush_session(fixture.toolhost, "s1");
	assert_int_equal(fixture.update_count, 1);
	let_end();
	finish("term-1");
	toolhost_flush_session(fixture.toolhost, "s1");
	assert_int_equal(fixture.update_count, 2);
	assert_non_null(strstr(item_text(last_update(), 0), "exited with status 1"));
	toolhost_flush_session(fixture.toolhost, "s1");
	expect_no_more(2);
}

static void test_the_last_state_comes_before_the_agent_says_more(void **state)
{
	create(UNTIL_GO "echo one");
	edited(update_of_one, NULL, NULL);
	let_go();
	finish("term-1");
	const char *other = UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t2\"");
	const char *done = UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\","
				  "\"status\":\"completed\"");
	assert_string_equal(edited(other, NULL, NULL), other);
	assert_string_equal(edited(done, NULL, NULL), done);
	assert_int_equal(fixture.update_count, 1);
	assert_string_equal(item_text(last_update(), 0), "```\none\n```");
	expect_no_more(1);
}

static void test_a_message_too_large_to_be_looked_at_passes(void **state)
{
	create("true");
	struct buf message;
	buf_init(&message, 1 << 20);
	assert_true(buf_append(&message,
		SPAN_LITERAL("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{"
			     "\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"tool_call\","
			     "\"toolCallId\":\"terminal\",\"rawInput\":[0"),
		NULL));
	for (int i = 0; i < 20000; i++) {
		assert_true(buf_append(&message, SPAN_LITERAL(",0"), NULL));
	}
	assert_true(buf_append(&message, (struct span){"]}}}", 5}, NULL));
	assert_string_equal(edited(buf_span(&message).data, NULL, NULL), buf_span(&message).data);
	buf_finish(&message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LOCAL(test_a_terminal_becomes_text_and_nothing_else_changes),
		ON_LOCAL(test_the_text_follows_the_output_to_the_end),
		ON_LOCAL(test_what_is_shown_late_is_shown_once),
		ON_LOCAL(test_other_content_is_kept_as_the_editor_got_it),
		ON_LOCAL(test_several_terminals_of_one_call_come_together),
		ON_LOCAL(test_at_most_ten_updates_a_second_and_the_last_state_always),
		ON_LOCAL(test_an_editor_that_is_slow_gets_the_last_state_later),
		ON_LOCAL(test_content_that_the_agent_replaces_is_not_brought_back),
		ON_LOCAL(test_updates_without_content_change_nothing),
		ON_LOCAL(test_a_terminal_of_another_session_is_not_shown),
		ON_LOCAL(test_a_released_terminal_is_followed_to_its_end),
		ON_LOCAL(test_a_fence_is_longer_than_any_in_the_output),
		ON_LOCAL(test_much_output_grows_by_its_end_and_ends_whole),
		ON_LOCAL(test_a_question_shows_it_too),
		ON_LOCAL(test_the_end_of_a_session_sends_the_last_state),
		ON_LOCAL(test_the_end_of_the_agent_sends_the_last_state_of_every_session),
		ON_LOCAL(test_what_is_pending_can_be_shown_at_once),
		ON_LOCAL(test_the_last_state_comes_before_the_agent_says_more),
		ON_LOCAL(test_a_message_too_large_to_be_looked_at_passes),
		ON_FAKE(test_the_text_follows_the_output_to_the_end),
	};
	return fixture_run(tests, ARRAY_LENGTH(tests));
}
