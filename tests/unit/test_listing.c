/* SPDX-License-Identifier: MIT */
#include "tests/unit/roots_fixture.h"

/* session/list, of one agent and of two. */

#define LIST "'method':'session/list','params':"
#define FIRST "'acp-broker:2:1:'"

static void test_with_one_agent_nothing_is_changed(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	editor_says(fixture, "'id':1," LIST "{'cursor':'c','x':[1]}");
	agent_hears(fixture, 0, "'id':2," LIST "{'cursor':'c','x':[1]}");
	agent_says(
		fixture, 0, "'id':2,'result':{ 'sessions':[{'sessionId':'s'}],'nextCursor':'d'}");
	editor_hears(fixture, "'id':1,'result':{ 'sessions':[{'sessionId':'s'}],'nextCursor':'d'}");
	editor_says(fixture, "'id':2," LIST "{}");
	agent_hears(fixture, 0, "'id':3," LIST "{}");
	agent_says(fixture, 0, "'id':3,'error':{'code':-32601,'message':'no'}");
	editor_hears(fixture, "'id':2,'error':{'code':-32601,'message':'no'}");
}

static void test_the_pages_of_one_agent_follow_those_of_the_other(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	editor_says(fixture, "'id':1," LIST "{'cwd':null}");
	agent_hears(fixture, 0, "'id':2," LIST "{'cwd':null}");
	agent_says(fixture, 0,
		"'id':2,'result':{'sessions':[{'sessionId':'s'}],'nextCursor':'a/\\\"b'}");
	editor_hears(fixture, "'id':1,'result':{'sessions':[{'sessionId':'s'}],"
			      "'nextCursor':'acp-broker:1:1:a/\\\"b'}");
	editor_says(fixture, "'id':2," LIST "{'cursor':'acp-broker:1:1:a/\\\"b'}");
	agent_hears(fixture, 0, "'id':3," LIST "{'cursor':'a/\\\"b'}");
	agent_says(fixture, 0, "'id':3,'result':{'sessions':[]}");
	editor_hears(fixture, "'id':2,'result':{'nextCursor':'acp-broker:2:1:','sessions':[]}");
	editor_says(fixture, "'id':3," LIST "{'cursor':'acp-broker:2:1:'}");
	agent_hears(fixture, 1, "'id':2," LIST "{'cursor':null}");
	agent_says(fixture, 1,
		"'id':2,'result':{'sessions':[{'cwd':'/runtime/two'}],'nextCursor':'z'}");
	editor_hears(fixture, "'id':3,'result':{'sessions':[{'cwd':'/two'}],"
			      "'nextCursor':'acp-broker:2:1:z'}");
	editor_says(fixture, "'id':4," LIST "{'cursor':'acp-broker:2:1:z'}");
	agent_hears(fixture, 1, "'id':3," LIST "{'cursor':'z'}");
	agent_says(fixture, 1, "'id':3,'result':{'sessions':[],'nextCursor':null}");
	editor_hears(fixture, "'id':4,'result':{'sessions':[],'nextCursor':null}");
}

static void test_no_cursor_of_an_agent_gives_way_to_the_next_agents(void **state)
{
	static const char *const nothing[] = {"null", "''", "7"};
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	for (int i = 0; i < 3; i++) {
		editor_says(fixture, "'id':1," LIST "{}");
		agent_hears(fixture, 0, "'id':%d," LIST "{}", 2 + i);
		agent_says(fixture, 0, "'id':%d,'result':{'nextCursor':%s,'sessions':[]}", 2 + i,
			nothing[i]);
		editor_hears(fixture, "'id':1,'result':{'nextCursor':" FIRST ",'sessions':[]}");
	}
	agent_hears_nothing(fixture, 1);
}

static void test_the_error_of_one_does_not_hide_the_sessions_of_the_other(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	editor_says(fixture, "'id':1," LIST "{}");
	agent_hears(fixture, 0, "'id':2," LIST "{}");
	agent_says(fixture, 0, "'id':2,'error':{'code':-32601,'message':'no'}");
	editor_hears(fixture, "'id':1,'result':{'sessions':[],'nextCursor':'acp-broker:2:0:'}");
	editor_says(fixture, "'id':2," LIST "{'cursor':'acp-broker:2:0:'}");
	agent_hears(fixture, 1, "'id':2," LIST "{'cursor':null}");
	agent_says(fixture, 1, "'id':2,'error':{'code':-32603,'message':'neither'}"); // all fail
	editor_hears(fixture, "'id':2,'error':{'code':-32603,'message':'neither'}");
	editor_says(fixture, "'id':3," LIST "{'cursor':" FIRST "}");
	agent_hears(fixture, 1, "'id':3," LIST "{'cursor':null}");
	agent_says(fixture, 1, "'id':3,'error':{'code':-32603,'message':'no'}"); // one did not
	editor_hears(fixture, "'id':3,'result':{'sessions':[]}");
}

static void test_a_list_that_was_cancelled_is_over(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	editor_says(fixture, "'id':1," LIST "{}");
	agent_hears(fixture, 0, "'id':2," LIST "{}");
	agent_says(fixture, 0, "'id':2,'error':{'code':-32800,'message':'cancelled'}");
	editor_hears(fixture, "'id':1,'error':{'code':-32800,'message':'cancelled'}");
}

static void test_an_agent_that_dies_gives_way_to_the_next(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	editor_says(fixture, "'id':1," LIST "{}");
	agent_hears(fixture, 0, "'id':2," LIST "{}");
	agent_dies(fixture, 0);
	editor_hears(fixture, "'id':1,'result':{'sessions':[],'nextCursor':'acp-broker:2:0:'}");
	editor_says(fixture, "'id':2," LIST "{'cursor':'acp-broker:1:1:old'}"); // its, meanwhile
	agent_hears(fixture, 1, "'id':2," LIST "{'cursor':null}");
	agent_says(fixture, 1, "'id':2,'result':{'sessions':[]}");
	editor_hears(fixture, "'id':2,'result':{'sessions':[]}");
	agent_dies(fixture, 1);
	editor_says(fixture, "'id':3," LIST "{'cursor':" FIRST "}");
	editor_hears(fixture, "'id':3,'result':{'sessions':[]}");
}

static void test_an_agent_that_is_stuck_gives_way_to_the_next(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	profile_of(fixture)->start_timeout_ms = 20;
	editor_says(fixture, "'id':1," LIST "{}");
	agent_hears(fixture, 0, "'id':2," LIST "{}");
	editor_hears(fixture, "'id':1,'result':{'sessions':[],'nextCursor':'acp-broker:2:0:'}");
	agent_says(fixture, 0, "'id':2,'result':{'sessions':[]}"); // too late
	editor_hears_nothing(fixture);
}

static void test_a_session_is_listed_by_the_name_the_editor_knows(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	editor_says(fixture, "'id':1," LIST "{'cursor':" FIRST "}");
	agent_hears(fixture, 1, "'id':2," LIST "{'cursor':null}");
	agent_says(fixture, 1,
		"'id':2,'result':{'sessions':[{'sessionId':'s'},{'sessionId':'t'},{'sessionId':7}]"
		"}");
	editor_hears(fixture, "'id':1,'result':{'sessions':[{'sessionId':'s~2'},{'sessionId':'t'},{"
			      "'sessionId':7}]}");
}

static void test_what_only_looks_like_a_cursor_of_ours_is_the_agents(void **state)
{
	static const char *const cursors[] = {"'acp-broker:'", "'acp-broker:x:1:'",
		"'acp-broker:2:2:'", "'acp-broker:2'", "'acp-broker:99999999999999999999:1:'", "7"};
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	for (int i = 0; i < (int)ARRAY_LENGTH(cursors); i++) {
		editor_says(fixture, "'id':1," LIST "{'cursor':%s}", cursors[i]);
		agent_hears(fixture, 0, "'id':%d," LIST "{'cursor':%s}", 2 + i, cursors[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_with_one_agent_nothing_is_changed),
		ROOTS_TEST(test_the_pages_of_one_agent_follow_those_of_the_other),
		ROOTS_TEST(test_no_cursor_of_an_agent_gives_way_to_the_next_agents),
		ROOTS_TEST(test_the_error_of_one_does_not_hide_the_sessions_of_the_other),
		ROOTS_TEST(test_a_list_that_was_cancelled_is_over),
		ROOTS_TEST(test_an_agent_that_dies_gives_way_to_the_next),
		ROOTS_TEST(test_an_agent_that_is_stuck_gives_way_to_the_next),
		ROOTS_TEST(test_a_session_is_listed_by_the_name_the_editor_knows),
		RELAY_TEST(test_what_only_looks_like_a_cursor_of_ours_is_the_agents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
