/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"

#include <signal.h>

enum { SHORT_MS = 30, SOON_MS = 500, LONG_MS = 60000 };

/* Every deadline is far away, so that a test must set the one that it waits for. */
static int set_up_end(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	struct profile *profile = profile_of(fixture);
	profile->stop_eof_ms = profile->stop_term_ms = profile->stop_kill_ms = LONG_MS;
	profile->drain_timeout_ms = LONG_MS;
	return 0;
}

/* The editor reads to the end of file, and must hear nothing more. */
static void editor_hears_end(struct fixture *fixture)
{
	char *line = editor_line(fixture);
	if (line) {
		fail_msg("came: %s", line);
	}
	stage_until(&fixture->stage, &fixture->is_finished);
}

/* ---- the order ---- */

static void test_prompts_are_cancelled_then_the_input_is_closed(void **state)
{
	struct fixture *fixture = *state;
	begin_with_sessions(fixture, (const char *const[]){"busy", "idle", NULL});
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'busy'}");
	agent_hears(fixture, 0, "'id':3,'method':'session/prompt','params':{'sessionId':'busy'}");
	editor_closes(fixture);
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'busy'}");
	agent_hears_end(fixture, 0);
	agent_says(fixture, 0, "'method':'session/update','params':{'n':1}");
	agent_says(fixture, 0, "'id':3,'result':{'stopReason':'cancelled'}");
	agent_dies(fixture, 0);
	editor_hears(fixture, "'method':'session/update','params':{'n':1}");
	editor_hears(fixture, "'id':'p','result':{'stopReason':'cancelled'}");
	editor_hears_end(fixture);
	assert_string_equal(fixture->finish_error, "");
	assert_int_equal(stage_open_sandboxes(&fixture->stage), 0);
}

static void test_a_prompt_that_is_not_answered_is_answered_by_the_broker(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'s'}");
	editor_closes(fixture);
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "\"p\"", "AGENT_EXITED", "relay", "exited with status 1");
	editor_hears_end(fixture);
}

static void test_what_the_agent_asked_is_answered_for_the_editor(void **state)
{
	static const char permission[] =
		"'method':'session/request_permission','params':{'sessionId':'s','toolCall':{},"
		"'options':[{'optionId':'x','kind':'allow_once'}]}";
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a',%s", permission);
	editor_hears(fixture, "'id':0,%s", permission);
	agent_says(fixture, 0, "'id':'b','method':'elicitation/create','params':{}");
	editor_hears(fixture, "'id':1,'method':'elicitation/create','params':{}");
	agent_says(fixture, 0, "'id':'c','method':'_x'");
	editor_hears(fixture, "'id':2,'method':'_x'");
	editor_closes(fixture);
	agent_hears(fixture, 0, "'id':'a','result':{'outcome':{'outcome':'cancelled'}}");
	agent_hears(fixture, 0, "'id':'b','result':{'action':'cancel'}");
	agent_hears_failure(fixture, 0, "\"c\"", "EDITOR_GONE", "stop", "closed the session");
	agent_hears_end(fixture, 0);
	agent_dies(fixture, 0);
	editor_hears_end(fixture);
}

static void test_what_the_agent_asks_later_is_answered_while_it_can_read(void **state)
{
	struct fixture *fixture = *state;
	fixture->ends_when_gone = false;
	begin_with_session(fixture);
	editor_closes(fixture);
	agent_says(fixture, 0, "'id':'a','method':'session/request_permission','params':{}");
	agent_hears(fixture, 0, "'id':'a','result':{'outcome':{'outcome':'cancelled'}}");
	agent_says(fixture, 0, "'id':'b','method':'fs/read_text_file','params':{'path':'/x'}");
	agent_hears_failure(fixture, 0, "\"b\"", "EDITOR_GONE", "stop", "");
	editor_hears_nothing(fixture);
}

/* A signal ends the broker while the editor is still there. */
static void test_an_editor_that_is_still_there_gets_no_further_work_done(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	relay_end(fixture->relay);
	editor_says(fixture, "'id':1,'method':'session/prompt','params':{'sessionId':'s'}");
	editor_hears_failure(fixture, "1", "SHUTTING_DOWN", "stop", "the broker is ending");
	editor_says(fixture, "'id':2,'method':'session/new','params':{}");
	editor_hears_failure(fixture, "2", "SHUTTING_DOWN", "stop", "");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'none'}");
	agent_hears_end(fixture, 0);
	agent_dies(fixture, 0);
	editor_hears_end(fixture);
	assert_false(fixture->is_gone);
	assert_int_equal(fixture->stage.prepared, 1);
}

/* ---- how long it takes ---- */

static void test_an_agent_that_does_not_end_is_told_to_and_killed(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->stop_eof_ms = SHORT_MS;
	profile_of(fixture)->stop_term_ms = SHORT_MS;
	begin_with_session(fixture);
	editor_closes(fixture);
	editor_hears_end(fixture);
	assert_non_null(strstr(agent(fixture, 0)->told, "TERM kill "));
}

static void test_the_end_takes_its_next_step_when_it_is_hurried(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	relay_end(fixture->relay);
	agent_hears_end(fixture, 0);
	relay_end(fixture->relay);
	actor_assert_told(agent(fixture, 0), "");
	relay_hurry(fixture->relay);
	actor_assert_told(agent(fixture, 0), "TERM ");
	relay_hurry(fixture->relay);
	editor_hears_end(fixture);
	assert_non_null(strstr(agent(fixture, 0)->told, "kill "));
}

static void test_an_editor_that_does_not_read_gets_the_drain_timeout(void **state)
{
	enum { BIG = 200000 };
	struct fixture *fixture = *state;
	profile_of(fixture)->drain_timeout_ms = SOON_MS;
	begin_with_session(fixture);
	char *text = mem_alloc_zero(BIG + 1);
	memset(text, 'x', BIG);
	agent_says(fixture, 0, "'method':'session/update','params':{'t':'%s'}", text);
	free(text);
	editor_closes(fixture);
	agent_dies(fixture, 0);
	assert_false(fixture->is_finished);
	stage_until(&fixture->stage, &fixture->is_finished);
}

static void test_an_editor_that_is_slow_gets_its_last_answers(void **state)
{
	enum { BIG = 200000 };
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	char *text = mem_alloc_zero(BIG + 1);
	memset(text, 'x', BIG);
	agent_says(fixture, 0, "'method':'session/update','params':{'t':'%s'}", text);
	editor_closes(fixture);
	agent_dies(fixture, 0);
	stage_settle(&fixture->stage);
	assert_false(fixture->is_finished);
	editor_hears(fixture, "'method':'session/update','params':{'t':'%s'}", text);
	editor_hears_end(fixture);
	free(text);
}

static void test_an_editor_that_is_killed_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	fd_close(&fixture->from_broker);
	editor_closes(fixture);
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':2,'result':{'stopReason':'cancelled'}");
	agent_dies(fixture, 0);
	stage_until(&fixture->stage, &fixture->is_finished);
}

/* ---- when nothing runs ---- */

static void test_without_an_agent_the_end_comes_at_once(void **state)
{
	struct fixture *fixture = *state;
	begin(fixture);
	relay_end(fixture->relay);
	relay_hurry(fixture->relay);
	assert_false(fixture->is_finished); // never from inside
	editor_hears_end(fixture);
	assert_int_equal(fixture->stage.prepared, 0);
}

static void test_an_end_before_the_sandbox_is_ready_still_does_what_came_before(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.holds_ready = true;
	begin(fixture);
	editor_says(fixture, "'id':0,%s", initialize_request);
	editor_closes(fixture);
	assert_int_equal(fixture->stage.actor_count, 0);
	stage_ready(&fixture->stage);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	agent_hears_end(fixture, 0);
	agent_says(fixture, 0, "'id':0,%s", initialize_result);
	agent_dies(fixture, 0);
	char *line = editor_line(fixture);
	assert_non_null(strstr(line, "\"result\":{"));
	free(line);
	editor_hears_end(fixture);
}

static void test_a_hurried_end_does_not_wait_for_the_sandbox(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.holds_ready = true;
	begin(fixture);
	editor_says(fixture, "'id':0,%s", initialize_request);
	editor_closes(fixture);
	relay_hurry(fixture->relay);
	editor_hears_failure(fixture, "0", "SHUTTING_DOWN", "stop", "agent | started");
	editor_hears_end(fixture);
	assert_int_equal(fixture->stage.actor_count, 0);
}

static void test_an_agent_that_died_before_holds_up_nothing(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	agent_dies(fixture, 0);
	editor_closes(fixture);
	editor_hears_end(fixture);
}

static void test_a_dead_agents_remains_are_waited_for(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.ignores_kill = true;
	begin_with_session(fixture);
	actor_exits(agent(fixture, 0), 0, 0);
	editor_closes(fixture);
	stage_settle(&fixture->stage);
	assert_false(fixture->is_finished);
	actor_empties(agent(fixture, 0));
	editor_hears_end(fixture);
}

#define END_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_end, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		END_TEST(test_prompts_are_cancelled_then_the_input_is_closed),
		END_TEST(test_a_prompt_that_is_not_answered_is_answered_by_the_broker),
		END_TEST(test_what_the_agent_asked_is_answered_for_the_editor),
		END_TEST(test_what_the_agent_asks_later_is_answered_while_it_can_read),
		END_TEST(test_an_editor_that_is_still_there_gets_no_further_work_done),
		END_TEST(test_an_agent_that_does_not_end_is_told_to_and_killed),
		END_TEST(test_the_end_takes_its_next_step_when_it_is_hurried),
		END_TEST(test_an_editor_that_does_not_read_gets_the_drain_timeout),
		END_TEST(test_an_editor_that_is_slow_gets_its_last_answers),
		END_TEST(test_an_editor_that_is_killed_is_not_waited_for),
		END_TEST(test_without_an_agent_the_end_comes_at_once),
		END_TEST(test_an_end_before_the_sandbox_is_ready_still_does_what_came_before),
		END_TEST(test_a_hurried_end_does_not_wait_for_the_sandbox),
		END_TEST(test_an_agent_that_died_before_holds_up_nothing),
		END_TEST(test_a_dead_agents_remains_are_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
