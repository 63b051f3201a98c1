/* SPDX-License-Identifier: MIT */
#include "tests/unit/grant_fixture.h"

/* Modes in which an agent does not ask are set back, and a prompt waits for that. */

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
	begin_with_policy(fixture, POLICY("mode = ask"));
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
	assert_non_null(strstr(notice, "the agent refuses to change it"));
	free(notice);
	editor_hears_failure(fixture, "6", "PERMISSION_DENIED", "relay", "mode \\\"yolo\\\"");
	agent_hears_nothing(fixture, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_a_stale_answer_is_not_taken_for_that_of_the_session_opened_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
