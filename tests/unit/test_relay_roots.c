/* SPDX-License-Identifier: MIT */
#include "tests/unit/roots_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pool.h"

/* ---- roots ---- */

static void test_a_sessions_directories_become_roots_before_the_agent_hears_of_them(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'session/new','params':{'cwd':'/w','additional"
			     "Directories':['/x','/y z']}");
	agent_hears(fixture, 0,
		"'id':1,'method':'session/new','params':{'cwd':'/runtime/w',"
		"'additionalDirectories':['/runtime/x','/runtime/y z']}");
	agent_says(fixture, 0, "'id':1,'result':{'sessionId':'s'}");
	editor_hears(fixture, "'id':1,'result':{'sessionId':'s'}");
	agent_says(fixture, 0,
		"'method':'session/update','params':{'sessionId':'s','update':"
		"{'locations':[{'path':'/runtime/y z/f'},{'path':'/runtime/x'}]}}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','update':"
			      "{'locations':[{'path':'/y z/f'},{'path':'/x'}]}}");
}

/* Whether the agent gets a block of text of the broker's after these words of the user's. */
static bool is_told_where_it_is(struct fixture *fixture, const char *words, int id)
{
	editor_says(fixture,
		"'id':%d,'method':'session/prompt','params':{'sessionId':'s','prompt':["
		"{'type':'text','text':'%s'}]}",
		id, words);
	char *line = agent_next_line(fixture, 0);
	assert_non_null(strstr(line, words)); // as the user wrote them
	bool is_told = strstr(line, "the directory /w is /runtime/w.") != NULL;
	assert_int_equal(is_told, strstr(line, "acp-broker") != NULL);
	free(line);
	return is_told;
}

static void test_an_agent_is_told_once_where_a_directory_is_that_a_prompt_names(void **state)
{
	struct fixture *fixture = *state;
	static const char *const others[] = {
		"none", "/workshop", "/w2/f", "/x/w", "file:///w/f", "a/w", "/w.old/f", "/w-1"};
	begin_greeted(fixture);
	open_session(fixture, 0, 1, "/w", "s");
	open_session(fixture, 0, 2, "/y", "other");
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		if (is_told_where_it_is(fixture, others[i], 10 + (int)i)) {
			fail_msg("%s", others[i]);
		}
	}
	assert_false(is_told_where_it_is(fixture, "of the other session: /y/f", 30));
	assert_true(is_told_where_it_is(fixture, "look:\\n/w. Then go on", 31));
	assert_false(is_told_where_it_is(fixture, "once more /w/f", 32));
}

static void test_a_directory_that_is_not_there_is_told(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'session/new','params':{'cwd':'/missing'}");
	editor_hears_failure(fixture, "1", "DIRECTORY_NOT_FOUND", "session", "no such directory");
	editor_says(fixture, "'id':2,'method':'session/new','params':{'cwd':'w'}");
	editor_hears_failure(fixture, "2", "INVALID_PARAMS", "session", "not absolute");
	editor_says(fixture, "'id':4,'method':'session/new','params':{'cwd':'/w',"
			     "'additionalDirectories':['x']}");
	editor_hears_failure(
		fixture, "4", "INVALID_PARAMS", "session", "workspace x | not absolute");
	editor_says(fixture, "'id':3,'method':'session/new','params':{'cwd':'/w',"
			     "'additionalDirectories':['/missing']}");
	editor_hears_failure(fixture, "3", "DIRECTORY_NOT_FOUND", "session", "no such directory");
	agent_hears_nothing(fixture, 0);
}

/* Names that an editor on Windows has for a folder of a Linux system beside it, and its URI. */
static void test_a_path_of_another_system_is_refused_and_not_guessed(void **state)
{
	struct fixture *fixture = *state;
	static const char *const paths[] = {"C:\\\\Users\\\\me\\\\w",
		"\\\\\\\\wsl.localhost\\\\Debian\\\\w", "file:///w"}; // as JSON has them
	begin_greeted(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		char id[2] = {(char)('1' + i), '\0'};
		char why[80];
		snprintf(why, sizeof(why), "workspace %s: it is not absolute", paths[i]);
		editor_says(fixture, "'id':%s,'method':'session/new','params':{'cwd':'%s'}", id,
			paths[i]);
		editor_hears_failure(fixture, id, "INVALID_PARAMS", "session", why);
	}
	agent_hears_nothing(fixture, 0);
}

/* The agent is about to load the session "old". */
static void begin_loading(struct fixture *fixture)
{
	begin_greeted(fixture);
	editor_says(
		fixture, "'id':1,'method':'session/load','params':{'sessionId':'old','cwd':'/w'}");
	agent_hears(fixture, 0,
		"'id':1,'method':'session/load','params':{'sessionId':'old','cwd':'/runtime/w'}");
	profile_of(fixture)->toolhost = TOOLHOST_BROKER;
}

/* While the agent loads a session, it is served from the session's directories. */
static void test_a_session_that_is_being_loaded_is_served(void **state)
{
	struct fixture *fixture = *state;
	begin_loading(fixture);
	for (int i = 0; i < 2; i++) {
		agent_says(fixture, 0,
			"'id':'o','method':'terminal/output','params':{'sessionId':'old',"
			"'terminalId':'t'}");
		agent_hears_failure(
			fixture, 0, "\"o\"", "INVALID_PARAMS", "tool", "\\\"t\\\" is not known");
		agent_says(fixture, 0,
			"'id':'p','method':'terminal/output','params':{'sessionId':'other',"
			"'terminalId':'t'}");
		agent_hears_failure(
			fixture, 0, "\"p\"", "INVALID_PARAMS", "session", "no session | agent");
		if (i == 0) {
			agent_says(fixture, 0, "'id':1,'result':{}");
			editor_hears(fixture, "'id':1,'result':{}");
		}
	}
}

/* Nobody could release the terminal of the session. */
static void test_what_is_begun_while_a_session_loads_ends_where_it_does_not_load(void **state)
{
	struct fixture *fixture = *state;
	begin_loading(fixture);
	agent_says(fixture, 0,
		"'id':'c','method':'terminal/create','params':{'sessionId':'old',"
		"'command':'make'}");
	agent_hears(fixture, 0, "'id':'c','result':{'terminalId':'term-1'}");
	actor_assert_told(agent(fixture, 1), "");
	agent_says(fixture, 0, "'id':1,'error':{'code':1,'message':'no'}");
	editor_hears(fixture, "'id':1,'error':{'code':1,'message':'no'}");
	actor_assert_told(agent(fixture, 1), "destroyed ");
}

static void test_without_a_directory_the_agent_says_what_it_misses(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'session/new','params':{}");
	agent_hears(fixture, 0, "'id':1,'method':'session/new','params':{}");
	editor_says(fixture, "'id':2,'method':'session/new','params':{'cwd':7}");
	agent_hears(fixture, 0, "'id':2,'method':'session/new','params':{'cwd':7}");
}

static void test_its_agent_may_die_while_a_root_is_added(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'session/new','params':{'cwd':'/w'}");
	for (int i = 0; i < 2; i++) { // the request was read, but its root is not there yet
		ev_run(fixture->stage.loop, EVRUN_NOWAIT);
	}
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "1", "AGENT_EXITED", "relay", "");
	editor_hears_nothing(fixture);
}

static void cancel_request(struct fixture *fixture, int id)
{
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':%d}", id);
	editor_hears(fixture,
		"'id':%d,'error':{'code':-32800,'message':'the request was cancelled'}", id);
}

static void test_it_can_be_cancelled_while_a_root_is_added(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'session/new','params':{'cwd':'/w'}");
	cancel_request(fixture, 1); // read together with it: no root yet
	agent_hears_nothing(fixture, 0);
	open_session(fixture, 0, 1, "/w", "s");
}

static void test_what_waits_for_the_sandbox_can_be_cancelled(void **state)
{
	struct fixture *fixture = *state;
	begin(fixture);
	editor_says(fixture, "'id':0,%s", initialize_request);
	editor_says(fixture, "'id':1,'method':'x/y'");
	editor_says(fixture, "'id':2,'method':'x/z'");
	cancel_request(fixture, 1);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	agent_hears(fixture, 0, "'id':1,'method':'x/z'");
}

static void test_the_agent_of_a_cancelled_request_gets_the_next_one(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.roots_max = 1;
	begin_greeted(fixture);
	open_session(fixture, 0, 1, "/one", "a");
	free(editor_line(fixture));
	fixture->stage.holds_ready = true;
	editor_says(fixture, "'id':1,'method':'session/new','params':{'cwd':'/two'}");
	stage_settle(&fixture->stage);
	cancel_request(fixture, 1); // a further agent was started for it
	editor_says(fixture, "'id':2,'method':'session/new','params':{'cwd':'/three'}");
	stage_settle(&fixture->stage);
	assert_int_equal(fixture->stage.prepared, 2);
	stage_ready(&fixture->stage);
	greet_further(fixture, 1);
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{'cwd':'/runtime/three'}");
}

/* toolhost = editor: the user has chosen this, wherever the agent is. */
static void begin_with_links(struct fixture *fixture)
{
	fixture->pool = pool_create(fixture->stage.loop);
	fixture->stage.capabilities.isolated = false; // nothing is synced
	begin_greeted(fixture);
}

static void test_an_editor_that_serves_files_gets_its_own_names_of_them(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->editor_terminals = true;
	begin_with_links(fixture);
	open_session(fixture, 0, 1, "/w", "s");
	free(editor_line(fixture));
	agent_says(fixture, 0,
		"'id':'r','method':'fs/read_text_file','params':{'sessionId':'s',"
		"'path':'/runtime/w/a b'}");
	editor_hears(fixture, "'id':0,'method':'fs/read_text_file','params':{'sessionId':'s',"
			      "'path':'/w/a b'}");
	editor_says(fixture, "'id':0,'error':{'code':-32002,'message':'/w/a b','data':"
			     "{'uri':'file:///w/a%%20b'}}");
	agent_hears(fixture, 0,
		"'id':'r','error':{'code':-32002,'message':'/w/a b','data':"
		"{'uri':'file:///runtime/w/a%%20b'}}");
	agent_says(fixture, 0,
		"'id':'w','method':'fs/write_text_file','params':{'sessionId':'s',"
		"'path':'/runtime/w/b','content':'/runtime/w'}");
	editor_hears(fixture, "'id':1,'method':'fs/write_text_file','params':{'sessionId':'s',"
			      "'path':'/w/b','content':'/runtime/w'}");
	agent_says(fixture, 0,
		"'id':'t','method':'terminal/create','params':{'sessionId':'s',"
		"'command':'pwd','cwd':'/runtime/w/d'}");
	editor_hears(fixture, "'id':2,'method':'terminal/create','params':{'sessionId':'s',"
			      "'command':'pwd','cwd':'/w/d'}");
}

static void ask_to_read(struct fixture *fixture, const char *folder, const char *name)
{
	agent_says(fixture, 0,
		"'id':'r','method':'fs/read_text_file','params':{'sessionId':'s',"
		"'path':'/runtime%s/%s'}",
		folder, name);
}

/* A sync may have brought links that the agent made. */
static void test_no_link_leads_the_editor_out_of_its_directories(void **state)
{
	struct fixture *fixture = *state;
	static const char *const links[][2] = {{"out", "/etc"}, {"up", ".."}, {"loop", "loop"},
		{"deep", "up/../up"}, {"new", "/nowhere/x"}, {"inner", "/etc"}};
	char folder[] = "/tmp/test-elsewhere-XXXXXX";
	char path[64];
	assert_non_null(mkdtemp(folder));
	begin_with_links(fixture);
	open_session(fixture, 0, 1, folder, "s");
	free(editor_line(fixture));
	snprintf(path, sizeof(path), "%s/inner", folder);
	open_session(fixture, 0, 2, path, "t"); // a directory of its own below the first
	free(editor_line(fixture));
	for (size_t i = 0; i < ARRAY_LENGTH(links); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, links[i][0]);
		assert_int_equal(symlink(links[i][1], path), 0);
		snprintf(path, sizeof(path), "%s/passwd", links[i][0]);
		ask_to_read(fixture, folder, path);
		agent_hears_failure(
			fixture, 0, "\"r\"", "SECURITY_VIOLATION", "session", "a link leads there");
	}
	for (size_t i = 0; i < ARRAY_LENGTH(links); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, links[i][0]);
		assert_int_equal(unlink(path), 0);
	}
	editor_hears_nothing(fixture);
	ask_to_read(fixture, folder, "plain");
	editor_hears(fixture,
		"'id':0,'method':'fs/read_text_file','params':{'sessionId':'s','path':'%s/plain'}",
		folder);
	assert_int_equal(rmdir(folder), 0);
}

static void test_the_editor_runs_no_commands_of_an_agent_elsewhere(void **state)
{
	static const char *const methods[] = {"terminal/create", "terminal/output",
		"terminal/release", "terminal/kill", "terminal/wait_for_exit", "terminal/other"};
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	open_session(fixture, 0, 1, "/w", "s");
	free(editor_line(fixture));
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		agent_says(fixture, 0, "'id':'t','method':'%s','params':{'sessionId':'s'}",
			methods[i]);
		agent_hears_failure(fixture, 0, "\"t\"", "PERMISSION_DENIED", "session",
			"editor-terminals = yes");
	}
	editor_hears_nothing(fixture);
}

/* ---- further agents ---- */

static void test_a_sandbox_that_takes_no_more_gets_a_further_agent(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.roots_max = 1;
	begin_greeted(fixture);
	open_session(fixture, 0, 1, "/one", "a");
	editor_hears(fixture, "'id':'new','result':{'sessionId':'a'}");
	editor_says(fixture, "'id':'new','method':'session/new','params':{'cwd':'/two'}");
	greet_further(fixture, 1);
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{'cwd':'/runtime/two'}");
	agent_says(fixture, 1, "'id':1,'result':{'sessionId':'b'}");
	editor_hears(fixture, "'id':'new','result':{'sessionId':'b'}");
	assert_int_equal(fixture->stage.prepared, 2);
	editor_says(fixture, "'id':1,'method':'session/prompt','params':{'sessionId':'b'}");
	agent_hears(fixture, 1, "'id':2,'method':'session/prompt','params':{'sessionId':'b'}");
	editor_says(fixture, "'id':2,'method':'session/prompt','params':{'sessionId':'a'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/prompt','params':{'sessionId':'a'}");
	open_session(fixture, 0, 3, "/one", "c"); // a root it has already
	editor_hears(fixture, "'id':'new','result':{'sessionId':'c'}");
	assert_int_equal(fixture->stage.prepared, 2);
}

/*
 * The youngest one took the place of the earlier ones, so the next request is for its kind of
 * agent.
 */
static void test_of_two_that_have_ended_the_youngest_is_started_anew(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	agent_dies(fixture, 1);
	agent_dies(fixture, 0);                        // the last one to end is not the youngest
	editor_says(fixture, "'id':1,'method':'x/y'"); // of no session
	greet_further(fixture, 2);
	agent_hears(fixture, 2, "'id':1,'method':'x/y'");
	editor_says(fixture, "'id':2,'method':'session/new','params':{'cwd':'/two'}");
	agent_hears(fixture, 2, "'id':2,'method':'session/new','params':{'cwd':'/runtime/two'}");
	editor_says(fixture, "'id':3,'method':'session/new','params':{'cwd':'/one'}");
	greet_further(fixture, 3); // to the other one, in its own sandbox
	agent_hears(fixture, 3, "'id':1,'method':'session/new','params':{'cwd':'/runtime/one'}");
	assert_int_equal(fixture->stage.prepared, 2);
}

static void test_sessions_that_two_agents_call_the_same_are_told_apart(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	editor_says(fixture, "'id':1,'method':'session/prompt','params':{'sessionId':'s~2'}");
	agent_hears(fixture, 1, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s~2'}");
	agent_hears(fixture, 1, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears_nothing(fixture, 0);
	agent_says(fixture, 1, "'method':'session/update','params':{'sessionId':'s'}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s~2'}");
	agent_says(fixture, 0, "'method':'session/update','params':{'sessionId':'s'}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s'}");
	agent_says(fixture, 1, "'id':'q','method':'_x','params':{'sessionId':'s'}");
	editor_hears(fixture, "'id':0,'method':'_x','params':{'sessionId':'s~2'}");
}

static void test_ids_of_two_agents_are_kept_apart(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	for (int i = 0; i < 2; i++) {
		agent_says(fixture, i, "'id':'same','method':'_x','params':{'n':%d}", i);
		editor_hears(fixture, "'id':%d,'method':'_x','params':{'n':%d}", i, i);
	}
	agent_says(fixture, 1, "'method':'$/cancel_request','params':{'requestId':'same'}");
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':1}");
	editor_says(fixture, "'id':1,'result':1");
	editor_says(fixture, "'id':0,'result':0");
	agent_hears(fixture, 0, "'id':'same','result':0");
	agent_hears(fixture, 1, "'id':'same','result':1");
	agent_says(fixture, 1, "'id':1,'result':{}"); // not the request of the other agent
	editor_hears_nothing(fixture);
}

static void test_the_death_of_one_agent_leaves_the_other_alone(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'s~2'}");
	agent_hears(fixture, 1, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	editor_says(fixture, "'id':'q','method':'session/prompt','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "\"q\"", "AGENT_EXITED", "relay", "");
	agent_says(fixture, 1, "'id':2,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'id':'p','result':{'stopReason':'end_turn'}");
	editor_says(fixture, "'id':'r','method':'session/prompt','params':{'sessionId':'s'}");
	editor_hears_failure(fixture, "\"r\"", "SESSION_LOST", "session", "");
	editor_says(fixture, "'id':'n','method':'session/new','params':{'cwd':'/one'}");
	agent_hears(fixture, 2, "'id':0,%s", initialize_request);
	assert_int_equal(fixture->stage.prepared, 2); // in the sandbox that has the directory
}

static void test_a_slow_agent_holds_up_requests_to_itself_only(void **state)
{
	enum { BIG = 200000 };
	struct fixture *fixture = *state;
	profile_of(fixture)->max_queue = 1000;
	begin_with_two(fixture);
	char *text = mem_alloc_zero(BIG + 1);
	memset(text, 'x', BIG);
	editor_says(fixture, "'id':1,'method':'_x','params':{'sessionId':'s','t':'%s'}", text);
	free(text);
	editor_says(fixture, "'id':2,'method':'_x','params':{'sessionId':'s'}");
	editor_hears_failure(fixture, "2", "RESOURCE_LIMIT_EXCEEDED", "relay", "");
	editor_says(fixture, "'id':3,'method':'_x','params':{'sessionId':'s~2'}");
	agent_hears(fixture, 1, "'id':2,'method':'_x','params':{'sessionId':'s'}");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s~2'}");
	agent_hears(fixture, 1, "'method':'session/cancel','params':{'sessionId':'s'}");
	free(agent_next_line(fixture, 0));
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
}

static void test_both_agents_end_with_the_broker(void **state)
{
	struct fixture *fixture = *state;
	begin_with_two(fixture);
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'s~2'}");
	agent_hears(fixture, 1, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	editor_closes(fixture);
	agent_hears(fixture, 1, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears_end(fixture, 0);
	agent_hears_end(fixture, 1);
	agent_dies(fixture, 0);
	assert_false(fixture->is_finished);
	agent_dies(fixture, 1);
	editor_hears_failure(fixture, "\"p\"", "AGENT_EXITED", "relay", "");
	stage_until(&fixture->stage, &fixture->is_finished);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROOTS_TEST(test_a_sessions_directories_become_roots_before_the_agent_hears_of_them),
		ROOTS_TEST(test_an_agent_is_told_once_where_a_directory_is_that_a_prompt_names),
		ROOTS_TEST(test_a_directory_that_is_not_there_is_told),
		ROOTS_TEST(test_a_path_of_another_system_is_refused_and_not_guessed),
		ROOTS_TEST(test_a_session_that_is_being_loaded_is_served),
		ROOTS_TEST(test_what_is_begun_while_a_session_loads_ends_where_it_does_not_load),
		ROOTS_TEST(test_without_a_directory_the_agent_says_what_it_misses),
		ROOTS_TEST(test_its_agent_may_die_while_a_root_is_added),
		ROOTS_TEST(test_it_can_be_cancelled_while_a_root_is_added),
		ROOTS_TEST(test_what_waits_for_the_sandbox_can_be_cancelled),
		ROOTS_TEST(test_the_agent_of_a_cancelled_request_gets_the_next_one),
		ROOTS_TEST(test_an_editor_that_serves_files_gets_its_own_names_of_them),
		ROOTS_TEST(test_no_link_leads_the_editor_out_of_its_directories),
		ROOTS_TEST(test_the_editor_runs_no_commands_of_an_agent_elsewhere),
		ROOTS_TEST(test_a_sandbox_that_takes_no_more_gets_a_further_agent),
		ROOTS_TEST(test_of_two_that_have_ended_the_youngest_is_started_anew),
		ROOTS_TEST(test_sessions_that_two_agents_call_the_same_are_told_apart),
		ROOTS_TEST(test_ids_of_two_agents_are_kept_apart),
		ROOTS_TEST(test_the_death_of_one_agent_leaves_the_other_alone),
		ROOTS_TEST(test_a_slow_agent_holds_up_requests_to_itself_only),
		ROOTS_TEST(test_both_agents_end_with_the_broker),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
