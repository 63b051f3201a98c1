/* SPDX-License-Identifier: MIT */
#include "broker/methods/pause.h"

#include "tests/unit/relay_sync_fixture.h"

enum { SHORT_MS = 40, LONG_MS = 60000 };

static const char is_paused[] = "'result':{'paused':true,'by':'cgroup','sessions':['s']}";
static const char runs[] = "'result':{'paused':false,'sessions':['s']}";

/* ---- requests and their answers ---- */

static void ask(struct fixture *fixture, const char *id, const char *method)
{
	editor_says(fixture, "'id':%s,'method':'_broker/session/%s','params':{'sessionId':'s'}", id,
		method);
}

static void begin_running(struct fixture *fixture)
{
	fixture->stage.capabilities.can_suspend = true;
	begin_synced(fixture);
}

static void begin_paused(struct fixture *fixture)
{
	begin_running(fixture);
	ask(fixture, "5", "pause");
	editor_hears(fixture, "'id':5,%s", is_paused);
	assert_int_equal(fixture->stage.suspended, 1);
}

/* What the record says on the disk. */
static void expect_state(struct fixture *fixture, const char *state)
{
	char words[64];
	ask(fixture, "6", "status");
	char *line = editor_line(fixture);
	snprintf(words, sizeof(words), "\"state\":\"%s\"", state);
	if (!strstr(line, words)) {
		fail_msg("%s is not in %s", words, line);
	}
	free(line);
}

static void expect_runs(struct fixture *fixture)
{
	expect_state(fixture, "active");
	assert_int_equal(fixture->stage.suspended, 0);
	agent_says(fixture, 0, "'method':'_goes_on','params':{}");
	editor_hears(fixture, "'method':'_goes_on','params':{}");
}

/* The sandbox was told to suspend and has not answered yet. */
static void wait_for_order(struct fixture *fixture)
{
	while (!fixture->stage.held_done) {
		stage_wait_turn(&fixture->stage);
	}
}

/* ---- pauses ---- */

static void test_what_cannot_be_paused_says_so(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	ask(fixture, "5", "pause");
	editor_hears_failure(fixture, "5", "PAUSE_UNSUPPORTED", "session", "cannot be frozen");
	editor_says(fixture, "'id':5,'method':'_broker/session/pause','params':{}");
	editor_hears_failure(fixture, "5", "INVALID_PARAMS", "session", "sessionId");
}

static void test_it_is_paused_and_goes_on(void **state)
{
	struct fixture *fixture = *state;
	begin_running(fixture);
	ask(fixture, "4", "resume"); // it runs
	editor_hears(fixture, "'id':4,%s", runs);
	ask(fixture, "5", "pause");
	ask(fixture, "7", "pause");
	editor_hears(fixture, "'id':5,%s", is_paused);
	editor_hears(fixture, "'id':7,%s", is_paused);
	expect_state(fixture, "paused");
	prompt(fixture, "8");
	editor_hears_failure(fixture, "8", "SESSION_PAUSED", "session", "_broker/session/resume");
	agent_hears_nothing(fixture, 0);
	ask(fixture, "9", "resume");
	editor_hears(fixture, "'id':9,%s", runs);
	expect_runs(fixture);
}

static void test_what_the_agent_has_said_waits_until_it_goes_on(void **state)
{
	struct fixture *fixture = *state;
	begin_paused(fixture);
	agent_says(fixture, 0, "'method':'_said_before','params':{}");
	stage_settle(&fixture->stage);
	editor_hears_nothing(fixture);
	ask(fixture, "9", "resume");
	editor_hears(fixture, "'method':'_said_before','params':{}");
	editor_hears(fixture, "'id':9,%s", runs);
}

static void test_a_question_of_the_agent_is_answered_first(void **state)
{
	struct fixture *fixture = *state;
	begin_running(fixture);
	agent_says(fixture, 0, "'id':'q','method':'_question','params':{}");
	editor_hears(fixture, "'id':0,'method':'_question','params':{}");
	ask(fixture, "5", "pause");
	stage_settle(&fixture->stage);
	editor_hears_nothing(fixture);
	editor_says(fixture, "'id':0,'result':{}");
	agent_hears(fixture, 0, "'id':'q','result':{}");
	editor_hears(fixture, "'id':5,%s", is_paused);
}

static void test_one_that_is_not_answered_in_time_is_in_flight(void **state)
{
	struct fixture *fixture = *state;
	begin_running(fixture);
	profile_of(fixture)->pause_drain_timeout_ms = SHORT_MS;
	agent_says(fixture, 0, "'id':'q','method':'_question','params':{}");
	editor_hears(fixture, "'id':0,'method':'_question','params':{}");
	ask(fixture, "5", "pause");
	editor_hears_failure(fixture, "5", "TOOLS_IN_FLIGHT", "session", "pause-drain-timeout");
	expect_runs(fixture);
}

static void test_a_sandbox_that_fails_to_pause_goes_on(void **state)
{
	struct fixture *fixture = *state;
	begin_running(fixture);
	error_set(&fixture->stage.suspend_error, ERROR_TIMEOUT, "it runs away");
	ask(fixture, "5", "pause");
	editor_hears_failure(fixture, "5", "TIMEOUT_EXCEEDED", "session", "it runs away");
	expect_runs(fixture);
}

static void test_a_pause_that_takes_too_long_is_taken_back_before_the_next(void **state)
{
	struct fixture *fixture = *state;
	begin_running(fixture);
	profile_of(fixture)->pause_timeout_ms = SHORT_MS;
	fixture->stage.holds_suspend = true;
	ask(fixture, "5", "pause");
	editor_hears_failure(fixture, "5", "TIMEOUT_EXCEEDED", "session", "(pause-timeout)");
	expect_runs(fixture);
	ask(fixture, "5", "pause");
	editor_hears_failure(fixture, "5", "PAUSE_INTERRUPTED", "session", "took too long");
	expect_runs(fixture);
	fixture->stage.holds_suspend = false;
	stage_go_on(&fixture->stage);
	ask(fixture, "5", "pause");
	editor_hears(fixture, "'id':5,%s", is_paused);
}

/* The sandbox was told to resume, and has not answered within pause-timeout. */
static void begin_going_on(struct fixture *fixture)
{
	begin_paused(fixture);
	profile_of(fixture)->pause_timeout_ms = SHORT_MS;
	fixture->stage.holds_suspend = true;
	ask(fixture, "9", "resume");
	editor_hears_failure(fixture, "9", "TIMEOUT_EXCEEDED", "session", "go on");
	expect_state(fixture, "paused"); // as far as is known
	profile_of(fixture)->pause_timeout_ms = LONG_MS;
	fixture->stage.holds_suspend = false;
}

static void test_a_second_resume_waits_for_what_the_first_has_asked_for(void **state)
{
	struct fixture *fixture = *state;
	begin_going_on(fixture);
	ask(fixture, "9", "resume");
	stage_settle(&fixture->stage);
	editor_hears_nothing(fixture);
	stage_go_on(&fixture->stage);
	editor_hears(fixture, "'id':9,%s", runs);
	expect_runs(fixture);
}

static void test_what_goes_on_too_late_goes_on(void **state)
{
	struct fixture *fixture = *state;
	begin_going_on(fixture);
	stage_go_on(&fixture->stage);
	agent_says(fixture, 0, "'method':'_late','params':{}");
	editor_hears(fixture, "'method':'_late','params':{}");
	expect_runs(fixture);
}

static void test_what_may_go_on_too_late_is_paused_again_after_that(void **state)
{
	struct fixture *fixture = *state;
	begin_going_on(fixture);
	ask(fixture, "5", "pause");
	stage_settle(&fixture->stage);
	editor_hears_nothing(fixture);
	stage_go_on(&fixture->stage);
	editor_hears(fixture, "'id':5,%s", is_paused);
	assert_int_equal(fixture->stage.suspended, 1);
}

static void test_a_resume_takes_back_a_pause(void **state)
{
	struct fixture *fixture = *state;
	begin_running(fixture);
	fixture->stage.holds_suspend = true;
	ask(fixture, "5", "pause");
	wait_for_order(fixture);
	ask(fixture, "9", "resume");
	editor_hears(fixture, "'id':9,%s", runs);
	editor_hears_failure(fixture, "5", "PAUSE_INTERRUPTED", "session", "taken back");
	fixture->stage.holds_suspend = false;
	expect_runs(fixture);
}

static void test_a_pause_while_it_goes_on_pauses_it_again(void **state)
{
	struct fixture *fixture = *state;
	begin_paused(fixture);
	fixture->stage.holds_suspend = true;
	ask(fixture, "9", "resume");
	wait_for_order(fixture);
	ask(fixture, "7", "pause");
	stage_settle(&fixture->stage);
	fixture->stage.holds_suspend = false;
	stage_go_on(&fixture->stage);
	editor_hears(fixture, "'id':9,%s", runs);
	editor_hears(fixture, "'id':7,%s", is_paused);
	expect_state(fixture, "paused");
	assert_int_equal(fixture->stage.suspended, 1);
}

static void test_the_end_of_a_session_lets_it_go_on(void **state)
{
	struct fixture *fixture = *state;
	begin_paused(fixture);
	editor_says(fixture, "'id':3,'method':'session/close','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/close','params':{'sessionId':'s'}");
	stage_settle(&fixture->stage);
	assert_int_equal(fixture->stage.suspended, 0);
	agent_says(fixture, 0, "'id':2,'result':{}");
	editor_hears(fixture, "'id':3,'result':{}");
}

static void test_the_end_of_the_broker_lets_it_go_on(void **state)
{
	struct fixture *fixture = *state;
	begin_paused(fixture);
	relay_end(fixture->relay);
	assert_int_equal(fixture->stage.suspended, 0);
	agent_says(fixture, 0, "'method':'_last_words','params':{}");
	editor_hears(fixture, "'method':'_last_words','params':{}");
	actor_dies(agent(fixture, 0), 0, 0);
	stage_settle(&fixture->stage);
}

static void test_the_end_of_the_agent_is_told_to_who_waits(void **state)
{
	struct fixture *fixture = *state;
	begin_running(fixture);
	fixture->stage.holds_suspend = true;
	ask(fixture, "5", "pause");
	wait_for_order(fixture);
	fixture->stage.ignores_kill = true;
	actor_exits(agent(fixture, 0), 1, 0);
	editor_hears_failure(fixture, "5", "PAUSE_INTERRUPTED", "session", "ended");
	ask(fixture, "7", "pause");
	editor_hears_failure(fixture, "7", "AGENT_EXITED", "session", "nothing to pause");
	ask(fixture, "9", "resume");
	editor_hears(fixture, "'id':9,%s", runs);
	actor_empties(agent(fixture, 0));
	stage_settle(&fixture->stage);
}

static void test_silence_while_paused_is_not_the_agents(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.capabilities.can_suspend = true;
	profile_of(fixture)->idle_timeout_ms = SHORT_MS;
	begin_synced(fixture);
	prompt(fixture, "8");
	agent_hears_prompt(fixture, 2);
	ask(fixture, "5", "pause");
	editor_hears(fixture, "'id':5,%s", is_paused);
	for (int i = 0; i < 3 * SHORT_MS; i++) {
		stage_wait_turn(&fixture->stage);
	}
	editor_hears_nothing(fixture);
}

/* ---- while the link is lost ---- */

static void wait_longer_than_a_deadline(struct fixture *fixture)
{
	long long until_ms = clock_now_ms() + 3 * SHORT_MS;
	while (clock_now_ms() < until_ms) {
		stage_wait_turn(&fixture->stage);
	}
	editor_hears_nothing(fixture);
}

static void test_pause_timeout_stops_while_the_link_is_lost(void **state)
{
	struct fixture *fixture = *state;
	begin_running(fixture);
	profile_of(fixture)->pause_timeout_ms = SHORT_MS;
	fixture->stage.holds_suspend = true;
	stage_lose_link(&fixture->stage, "no answer");
	ask(fixture, "5", "pause");
	wait_for_order(fixture);
	wait_longer_than_a_deadline(fixture);
	stage_find_link(&fixture->stage);
	fixture->stage.holds_suspend = false;
	stage_go_on(&fixture->stage);
	editor_hears(fixture, "'id':5,%s", is_paused);
}

static void test_a_resume_gets_that_time_too(void **state)
{
	struct fixture *fixture = *state;
	begin_paused(fixture);
	profile_of(fixture)->pause_timeout_ms = SHORT_MS;
	fixture->stage.holds_suspend = true;
	ask(fixture, "9", "resume");
	wait_for_order(fixture);
	stage_lose_link(&fixture->stage, "no answer");
	wait_longer_than_a_deadline(fixture);
	stage_find_link(&fixture->stage);
	fixture->stage.holds_suspend = false;
	stage_go_on(&fixture->stage);
	editor_hears(fixture, "'id':9,%s", runs);
}

static void test_tool_calls_get_that_time_before_a_pause(void **state)
{
	struct fixture *fixture = *state;
	begin_running(fixture);
	profile_of(fixture)->pause_drain_timeout_ms = SHORT_MS;
	agent_says(fixture, 0, "'id':'q','method':'_question','params':{}");
	editor_hears(fixture, "'id':0,'method':'_question','params':{}");
	stage_lose_link(&fixture->stage, "no answer");
	ask(fixture, "5", "pause");
	wait_longer_than_a_deadline(fixture);
	stage_find_link(&fixture->stage);
	editor_says(fixture, "'id':0,'result':{}");
	agent_hears(fixture, 0, "'id':'q','result':{}");
	editor_hears(fixture, "'id':5,%s", is_paused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_TEST(test_what_cannot_be_paused_says_so),
		SYNC_TEST(test_it_is_paused_and_goes_on),
		SYNC_TEST(test_what_the_agent_has_said_waits_until_it_goes_on),
		SYNC_TEST(test_a_question_of_the_agent_is_answered_first),
		SYNC_TEST(test_one_that_is_not_answered_in_time_is_in_flight),
		SYNC_TEST(test_a_sandbox_that_fails_to_pause_goes_on),
		SYNC_TEST(test_a_pause_that_takes_too_long_is_taken_back_before_the_next),
		SYNC_TEST(test_a_second_resume_waits_for_what_the_first_has_asked_for),
		SYNC_TEST(test_what_goes_on_too_late_goes_on),
		SYNC_TEST(test_what_may_go_on_too_late_is_paused_again_after_that),
		SYNC_TEST(test_a_resume_takes_back_a_pause),
		SYNC_TEST(test_a_pause_while_it_goes_on_pauses_it_again),
		SYNC_TEST(test_the_end_of_a_session_lets_it_go_on),
		SYNC_TEST(test_the_end_of_the_broker_lets_it_go_on),
		SYNC_TEST(test_the_end_of_the_agent_is_told_to_who_waits),
		SYNC_TEST(test_silence_while_paused_is_not_the_agents),
		SYNC_TEST(test_pause_timeout_stops_while_the_link_is_lost),
		SYNC_TEST(test_a_resume_gets_that_time_too),
		SYNC_TEST(test_tool_calls_get_that_time_before_a_pause),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
