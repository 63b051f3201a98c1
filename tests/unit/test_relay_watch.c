/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"

#include "base/fd.h"

enum {
	SHORT_MS = 40, // for a deadline that a test waits for
	LONG_MS = 300, // for one that something has to come before
};

static const char permission[] = "'method':'session/request_permission','params':{'sessionId':'s',"
				 "'toolCall':{},'options':[{'optionId':'x','kind':'allow_once'}]}";

/* ---- permission-timeout ---- */

static void test_a_question_nobody_answers_is_answered_and_withdrawn(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->permission_timeout_ms = SHORT_MS;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a',%s", permission);
	editor_hears(fixture, "'id':0,%s", permission);
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
	agent_hears(fixture, 0, "'id':'a','result':{'outcome':{'outcome':'cancelled'}}");
	editor_says(fixture, "'id':0,'result':{'outcome':{'outcome':'selected','optionId':'x'}}");
	agent_hears_nothing(fixture, 0); // too late
}

/*
 * The broker waits until an editor has answered what it has cancelled; an editor that does not
 * answer holds nothing up.
 */
static void test_a_question_of_a_cancelled_turn_is_answered_at_last(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->cancel_timeout_ms = SHORT_MS;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a',%s", permission);
	editor_hears(fixture, "'id':0,%s", permission);
	wait_ms(fixture, 2 * SHORT_MS);
	editor_hears_nothing(fixture); // no turn was cancelled
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
	agent_hears(fixture, 0, "'id':'a','result':{'outcome':{'outcome':'cancelled'}}");
	editor_says(fixture, "'id':0,'result':{'outcome':{'outcome':'selected','optionId':'x'}}");
	agent_hears_nothing(fixture, 0); // too late
}

static void test_an_answer_to_a_question_of_a_cancelled_turn_counts(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->cancel_timeout_ms = LONG_MS;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a',%s", permission);
	editor_hears(fixture, "'id':0,%s", permission);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_says(fixture, "'id':0,'result':{'outcome':{'outcome':'cancelled'}}");
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':'a','result':{'outcome':{'outcome':'cancelled'}}");
	wait_ms(fixture, LONG_MS + LONG_MS / 4);
	editor_hears_nothing(fixture);
	agent_hears_nothing(fixture, 0);
}

static void test_an_elicitation_nobody_answers_is_cancelled(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->permission_timeout_ms = SHORT_MS;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a','method':'elicitation/create','params':{}");
	editor_hears(fixture, "'id':0,'method':'elicitation/create','params':{}");
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
	agent_hears(fixture, 0, "'id':'a','result':{'action':'cancel'}");
}

static void test_other_requests_have_all_the_time_they_need(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->permission_timeout_ms = LONG_MS;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a','method':'terminal/wait_for_exit','params':{}");
	editor_hears(fixture, "'id':0,'method':'terminal/wait_for_exit','params':{}");
	agent_says(fixture, 0, "'id':'b',%s", permission);
	editor_hears(fixture, "'id':1,%s", permission);
	editor_says(fixture, "'id':1,'result':{}"); // in time
	agent_hears(fixture, 0, "'id':'b','result':{}");
	wait_ms(fixture, LONG_MS + LONG_MS / 4);
	editor_hears_nothing(fixture);
	agent_hears_nothing(fixture, 0);
}

static void test_a_question_that_ends_with_its_agent_has_no_deadline_left(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->permission_timeout_ms = LONG_MS;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a',%s", permission);
	editor_hears(fixture, "'id':0,%s", permission);
	agent_dies(fixture, 0);
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
	wait_ms(fixture, LONG_MS + LONG_MS / 4);
	editor_hears_nothing(fixture);
}

/* ---- idle-timeout ---- */

static void prompt(struct fixture *fixture, int idle_ms)
{
	profile_of(fixture)->idle_timeout_ms = idle_ms;
	begin_with_session(fixture);
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
}

static void test_a_prompt_without_a_word_is_given_up(void **state)
{
	struct fixture *fixture = *state;
	prompt(fixture, SHORT_MS);
	editor_hears_failure(fixture, "\"p\"", "TIMEOUT_EXCEEDED", "relay",
		"agent 1 said nothing for 40 ms (idle-timeout)");
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':2,'result':{'stopReason':'cancelled'}");
	editor_hears_nothing(fixture); // it was answered
	editor_says(fixture, "'id':'q','method':'session/prompt','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':3,'method':'session/prompt','params':{'sessionId':'s'}");
	editor_hears_failure(fixture, "\"q\"", "TIMEOUT_EXCEEDED", "relay", "");
}

static void test_an_agent_that_talks_is_not_idle(void **state)
{
	struct fixture *fixture = *state;
	prompt(fixture, LONG_MS);
	for (int i = 0; i < 7; i++) {
		wait_ms(fixture, LONG_MS / 5);
		agent_says(fixture, 0, "'method':'session/update','params':{'n':%d}", i);
		editor_hears(fixture, "'method':'session/update','params':{'n':%d}", i);
	}
	agent_says(fixture, 0, "'id':2,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'id':'p','result':{'stopReason':'end_turn'}");
	wait_ms(fixture, LONG_MS + LONG_MS / 4);
	editor_hears_nothing(fixture); // nothing is open
}

static void test_an_agent_that_waits_for_the_editor_is_not_idle(void **state)
{
	struct fixture *fixture = *state;
	prompt(fixture, LONG_MS);
	agent_says(fixture, 0, "'id':'a',%s", permission);
	editor_hears(fixture, "'id':0,%s", permission);
	wait_ms(fixture, LONG_MS + LONG_MS / 4);
	editor_hears_nothing(fixture);
	editor_says(fixture, "'id':0,'result':{}");
	agent_hears(fixture, 0, "'id':'a','result':{}");
	editor_hears_failure(fixture, "\"p\"", "TIMEOUT_EXCEEDED", "relay", "idle-timeout");
}

/* A long build prints nothing, and the agent that waits for it sends nothing. */
static void test_an_agent_that_waits_for_its_terminal_is_not_idle(void **state)
{
	struct fixture *fixture = *state;
	prompt(fixture, LONG_MS);
	profile_of(fixture)->toolhost = TOOLHOST_BROKER;
	agent_says(fixture, 0,
		"'id':'c','method':'terminal/create','params':{'sessionId':'s','command':'make'}");
	agent_hears(fixture, 0, "'id':'c','result':{'terminalId':'term-1'}");
	agent_says(fixture, 0,
		"'id':'w','method':'terminal/wait_for_exit','params':{'sessionId':'s',"
		"'terminalId':'term-1'}");
	wait_ms(fixture, 2 * LONG_MS + LONG_MS / 4);
	editor_hears_nothing(fixture);
	actor_dies(agent(fixture, 1), 0, 0);
	agent_hears(fixture, 0, "'id':'w','result':{'exitCode':0,'signal':null}");
	editor_hears_failure(fixture, "\"p\"", "TIMEOUT_EXCEEDED", "relay", "idle-timeout");
}

static void test_only_prompts_are_given_up(void **state)
{
	struct fixture *fixture = *state;
	prompt(fixture, LONG_MS);
	editor_says(fixture, "'id':'x','method':'_x'");
	agent_hears(fixture, 0, "'id':3,'method':'_x'");
	editor_hears_failure(fixture, "\"p\"", "TIMEOUT_EXCEEDED", "relay", "");
	agent_says(fixture, 0, "'id':3,'result':1");
	editor_hears(fixture, "'id':'x','result':1");
}

static void test_a_prompts_agent_may_die_meanwhile(void **state)
{
	struct fixture *fixture = *state;
	prompt(fixture, LONG_MS);
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "\"p\"", "AGENT_EXITED", "relay", "");
	wait_ms(fixture, LONG_MS + LONG_MS / 4);
	editor_hears_nothing(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_a_question_nobody_answers_is_answered_and_withdrawn),
		RELAY_TEST(test_a_question_of_a_cancelled_turn_is_answered_at_last),
		RELAY_TEST(test_an_answer_to_a_question_of_a_cancelled_turn_counts),
		RELAY_TEST(test_an_elicitation_nobody_answers_is_cancelled),
		RELAY_TEST(test_other_requests_have_all_the_time_they_need),
		RELAY_TEST(test_a_question_that_ends_with_its_agent_has_no_deadline_left),
		RELAY_TEST(test_a_prompt_without_a_word_is_given_up),
		RELAY_TEST(test_an_agent_that_talks_is_not_idle),
		RELAY_TEST(test_an_agent_that_waits_for_the_editor_is_not_idle),
		RELAY_TEST(test_an_agent_that_waits_for_its_terminal_is_not_idle),
		RELAY_TEST(test_only_prompts_are_given_up),
		RELAY_TEST(test_a_prompts_agent_may_die_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
