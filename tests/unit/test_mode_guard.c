/* SPDX-License-Identifier: MIT */
#include "tests/unit/grant_fixture.h"

/* Modes in which an agent does not ask: the guard sets them back, and a prompt waits for that. */

#define IN_YOLO                                                                                    \
	"'modes':{'currentModeId':'yolo','availableModes':[{'id':'default','name':'d'},"           \
	"{'id':'yolo','name':'y'}]}"
#define SET_BACK "'method':'session/set_mode','params':{'sessionId':'s','modeId':'default'}"
#define LOAD "'method':'session/load','params':{'sessionId':'s','cwd':'/w'}"
#define PROMPT "'method':'session/prompt','params':{'sessionId':'s','prompt':[]}"

static void load_in_yolo(struct fixture *fixture, int id)
{
	editor_says(fixture, "'id':%d," LOAD, id);
	agent_hears(fixture, 0, "'id':%d," LOAD, id);
	agent_says(fixture, 0, "'id':%d,'result':{" IN_YOLO "}", id);
	editor_hears(fixture, "'id':%d,'result':{" IN_YOLO "}", id);
}

static void test_a_stale_answer_is_not_taken_for_that_of_the_session_opened_again(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = pass"));
	load_in_yolo(fixture, 2);
	agent_hears(fixture, 0, "'id':3," SET_BACK);
	load_in_yolo(fixture, 4);
	agent_hears(fixture, 0, "'id':5," SET_BACK);
	agent_says(fixture, 0, "'id':3,'result':{}");
	editor_says(fixture, "'id':6," PROMPT);
	agent_hears_nothing(fixture, 0);
	editor_hears_nothing(fixture);
	agent_says(fixture, 0, "'id':5,'error':{'code':1,'message':'no'}");
	char *notice = editor_line(fixture);
	assert_non_null(strstr(notice, "agent refuses"));
	free(notice);
	editor_hears_failure(fixture, "6", "PERMISSION_DENIED", "relay", "mode \\\"yolo\\\"");
	agent_hears_nothing(fixture, 0);
}

/* A prompt waits for the agent's answer to a set-back. */
static void hold_prompt(struct fixture *fixture)
{
	begin_with_policy(fixture, POLICY("mode = pass"));
	load_in_yolo(fixture, 2);
	agent_hears(fixture, 0, "'id':3," SET_BACK);
	editor_says(fixture, "'id':4," PROMPT);
	agent_hears_nothing(fixture, 0);
}

static void test_an_agent_that_dies_meanwhile_fails_the_prompt_that_waits(void **state)
{
	struct fixture *fixture = *state;
	hold_prompt(fixture);
	editor_says(fixture, "'id':5,'method':'_x','params':{}");
	agent_hears(fixture, 0, "'id':4,'method':'_x','params':{}");
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "4", "AGENT_EXITED", "relay", "");
	editor_hears_failure(fixture, "5", "AGENT_EXITED", "relay", "");
	editor_hears_nothing(fixture);
}

static void test_a_prompt_that_waits_ends_with_its_session(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = pass"));
	load_in_yolo(fixture, 2);
	agent_hears(fixture, 0, "'id':3," SET_BACK);
	editor_says(fixture, "'id':4,'method':'session/close','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':4,'method':'session/close','params':{'sessionId':'s'}");
	editor_says(fixture, "'id':5," PROMPT);
	editor_hears_nothing(fixture);
	agent_says(fixture, 0, "'id':4,'result':{}");
	editor_hears(fixture, "'id':5,'result':{'stopReason':'cancelled'}");
	editor_hears(fixture, "'id':4,'result':{}");
	agent_says(fixture, 0, "'id':3,'result':{}");
	editor_hears_nothing(fixture);
}

static void test_a_prompt_that_waits_can_be_cancelled(void **state)
{
	struct fixture *fixture = *state;
	hold_prompt(fixture);
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':4}");
	char *answer = editor_line(fixture);
	assert_non_null(strstr(answer, "\"id\":4,"));
	assert_non_null(strstr(answer, "-32800"));
	free(answer);
	agent_says(fixture, 0, "'id':3,'result':{}");
	for (int i = 0; i < 2; i++) { // the mode as it is now, and why
		free(editor_line(fixture));
	}
	editor_hears_nothing(fixture);
	agent_hears_nothing(fixture, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_a_stale_answer_is_not_taken_for_that_of_the_session_opened_again),
		RELAY_TEST(test_an_agent_that_dies_meanwhile_fails_the_prompt_that_waits),
		RELAY_TEST(test_a_prompt_that_waits_ends_with_its_session),
		RELAY_TEST(test_a_prompt_that_waits_can_be_cancelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
