/* SPDX-License-Identifier: MIT */
#include "broker/relay/link_show.h"

#include "tests/support/facts.h"
#include "tests/unit/relay_fixture.h"

#include <stdio.h>

enum { SHORT_MS = 40, LONG_MS = 300 };

/* The next line is about the tool call, and its title begins like this. */
static void editor_is_shown(struct fixture *fixture, const char *session, const char *kind,
	int number, const char *title, const char *status)
{
	char expected[512];
	char end[64];
	char *line = editor_line(fixture);
	assert_non_null(line);
	snprintf(expected, sizeof(expected),
		"{\"jsonrpc\":\"2.0\",\"method\":\"session/"
		"update\",\"params\":{\"sessionId\":\"%s\","
		"\"update\":{\"sessionUpdate\":\"%s\",\"toolCallId\":\"acp-broker-notice-%d\","
		"\"title\":\"%s",
		session, kind, number, title);
	snprintf(end, sizeof(end), "\"status\":\"%s\"}}}", status);
	if (strncmp(line, expected, strlen(expected)) != 0 || !strstr(line, end)) {
		fail_msg("came: %s\nexpected: %s … %s", line, expected, end);
	}
	free(line);
}

static void prompt(struct fixture *fixture, const char *session, int id)
{
	editor_says(fixture, "'id':'%s','method':'session/prompt','params':{'sessionId':'%s'}",
		session, session);
	agent_hears(fixture, 0, "'id':%d,'method':'session/prompt','params':{'sessionId':'%s'}", id,
		session);
}

static void answer(struct fixture *fixture, const char *session, int id)
{
	agent_says(fixture, 0, "'id':%d,'result':{'stopReason':'end_turn'}", id);
	editor_hears(fixture, "'id':'%s','result':{'stopReason':'end_turn'}", session);
}

static void test_a_session_with_an_open_turn_sees_one_tool_call(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	prompt(fixture, "s", 2);
	stage_lose_link(&fixture->stage, "no answer");
	editor_is_shown(fixture, "s", "tool_call", 1, "box unreachable, reconnecting (no answer)",
		"in_progress");
	stage_find_link(&fixture->stage);
	editor_is_shown(
		fixture, "s", "tool_call_update", 1, "box: reconnected after 0 s", "completed");
	answer(fixture, "s", 2);
	editor_hears_nothing(fixture);
}

static void test_it_is_updated_while_the_link_is_lost(void **state)
{
	struct fixture *fixture = *state;
	fixture->link_show_ms = 1;
	begin_with_session(fixture);
	prompt(fixture, "s", 2);
	stage_lose_link(&fixture->stage, "no answer");
	editor_is_shown(fixture, "s", "tool_call", 1, "box unreachable, ", "in_progress");
	for (int i = 0; i < 4; i++) {
		editor_is_shown(fixture, "s", "tool_call_update", 1,
			"box unreachable for 0 s, reconnecting", "in_progress");
	}
}

/* The other sessions are idle, and nothing of theirs waits. */
static void test_every_session_with_an_open_turn_sees_it_and_no_other_one(void **state)
{
	struct fixture *fixture = *state;
	begin_with_sessions(fixture, (const char *const[]){"s", "t", "u", NULL});
	prompt(fixture, "t", 4);
	prompt(fixture, "u", 5);
	stage_lose_link(&fixture->stage, "no answer");
	char *first = editor_line(fixture);
	char *second = editor_line(fixture);
	assert_non_null(strstr(first, "box unreachable"));
	assert_non_null(strstr(second, "box unreachable"));
	assert_true(!!strstr(first, "\"t\"") + !!strstr(second, "\"t\"") == 1);
	assert_true(!!strstr(first, "\"u\"") + !!strstr(second, "\"u\"") == 1);
	free(first);
	free(second);
	editor_hears_nothing(fixture);
}

static void test_a_turn_that_begins_later_sees_it_too(void **state)
{
	struct fixture *fixture = *state;
	fixture->link_show_ms = SHORT_MS;
	begin_with_session(fixture);
	stage_lose_link(&fixture->stage, "no answer");
	wait_ms(fixture, 2 * SHORT_MS);
	editor_hears_nothing(fixture);
	prompt(fixture, "s", 2);
	editor_is_shown(fixture, "s", "tool_call", 1, "box unreachable for 0 s, reconnecting",
		"in_progress");
	stage_find_link(&fixture->stage);
	editor_is_shown(
		fixture, "s", "tool_call_update", 1, "box: reconnected after 0 s", "completed");
}

static void test_the_second_loss_is_another_tool_call(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	prompt(fixture, "s", 2);
	for (int i = 1; i <= 2; i++) {
		stage_lose_link(&fixture->stage, "no answer");
		editor_is_shown(fixture, "s", "tool_call", i, "box unreachable", "in_progress");
		stage_find_link(&fixture->stage);
		editor_is_shown(
			fixture, "s", "tool_call_update", i, "box: reconnected", "completed");
	}
}

static void test_a_lost_run_is_shown_as_a_failure_with_the_reason(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	prompt(fixture, "s", 2);
	stage_lose_link(&fixture->stage, "no answer");
	editor_is_shown(fixture, "s", "tool_call", 1, "box unreachable", "in_progress");
	stage_lose(&fixture->stage, "the host was restarted");
	char *line = editor_line(fixture);
	assert_non_null(strstr(line, "\"acp-broker-notice-1\""));
	assert_true(text_names(line, "box | lost | the host was restarted"));
	assert_non_null(strstr(line, "\"failed\""));
	free(line);
	line = editor_line(fixture);
	assert_non_null(strstr(line, "\"id\":\"s\",\"error\""));
	free(line);
}

/* ---- deadlines ---- */

static void test_idle_timeout_stops_while_the_link_is_lost(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->idle_timeout_ms = SHORT_MS;
	begin_with_session(fixture);
	prompt(fixture, "s", 2);
	stage_lose_link(&fixture->stage, "no answer");
	editor_is_shown(fixture, "s", "tool_call", 1, "box unreachable", "in_progress");
	wait_ms(fixture, 3 * SHORT_MS);
	editor_hears_nothing(fixture);
	stage_find_link(&fixture->stage);
	editor_is_shown(fixture, "s", "tool_call_update", 1, "box: reconnected", "completed");
	editor_hears_failure(fixture, "\"s\"", "TIMEOUT_EXCEEDED", "relay", "idle-timeout");
}

static void test_start_timeout_stops_while_the_link_is_lost(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->start_timeout_ms = LONG_MS;
	begin(fixture);
	editor_says(fixture, "'id':0,%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	stage_lose_link(&fixture->stage, "no answer");
	wait_ms(fixture, LONG_MS + LONG_MS / 4);
	stage_find_link(&fixture->stage);
	editor_hears_nothing(fixture);
	agent_says(fixture, 0, "'id':0,%s", initialize_result);
	char *line = editor_line(fixture);
	assert_non_null(strstr(line, "\"id\":0,\"result\":{"));
	free(line);
}

/* Whoever asks for the health wants to know that nothing answers. */
static void test_health_timeout_does_not_stop(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->health_timeout_ms = SHORT_MS;
	begin_with_session(fixture);
	stage_lose_link(&fixture->stage, "no answer");
	editor_says(fixture, "'id':9,'method':'_broker/health','params':{}");
	char *line = editor_line(fixture);
	assert_non_null(strstr(line, "\"id\":9,\"result\":{"));
	assert_non_null(strstr(line, "\"isHealthy\":false"));
	assert_true(text_names(line, "problem | connection | lost | health-timeout"));
	free(line);
	stage_find_link(&fixture->stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_a_session_with_an_open_turn_sees_one_tool_call),
		RELAY_TEST(test_it_is_updated_while_the_link_is_lost),
		RELAY_TEST(test_every_session_with_an_open_turn_sees_it_and_no_other_one),
		RELAY_TEST(test_a_turn_that_begins_later_sees_it_too),
		RELAY_TEST(test_the_second_loss_is_another_tool_call),
		RELAY_TEST(test_a_lost_run_is_shown_as_a_failure_with_the_reason),
		RELAY_TEST(test_idle_timeout_stops_while_the_link_is_lost),
		RELAY_TEST(test_start_timeout_stops_while_the_link_is_lost),
		RELAY_TEST(test_health_timeout_does_not_stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
