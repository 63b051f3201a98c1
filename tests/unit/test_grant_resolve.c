/* SPDX-License-Identifier: MIT */
#include "tests/unit/grant_fixture.h"

/* Calls that wait until the links in their paths are resolved. */

enum { SHORT_MS = 40 };

static int set_up_pool(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	fixture->pool = pool_create(fixture->stage.loop);
	return 0;
}

static void ask_to_read(struct fixture *fixture, const char *id)
{
	agent_says(fixture, 0,
		"'id':'%s','method':'fs/read_text_file','params':{'sessionId':'s','path':'/w/f'}",
		id);
}

static void begin_held(struct fixture *fixture, int timeout_ms)
{
	close_gate(fixture);
	profile_of(fixture)->toolhost_limits.file_timeout_ms = timeout_ms;
	begin_with_policy(fixture, POLICY("mode = pass", "deny = read **/secret"));
	ask_to_read(fixture, "a");
}

static void test_a_call_goes_on_when_its_path_is_known(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture, 60000);
	editor_hears_nothing(fixture);
	open_gate();
	editor_hears(fixture, "'id':0,'method':'fs/read_text_file','params':{'sessionId':'s',"
			      "'path':'/w/f'}");
}

static void test_a_folder_that_does_not_answer_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture, SHORT_MS);
	ask_to_read(fixture, "b"); // has its own time, from its turn on
	agent_hears_failure(fixture, 0, "\"a\"", "TIMEOUT_EXCEEDED", "session",
		"were not resolved within 40 ms (file-timeout)");
	agent_hears_failure(fixture, 0, "\"b\"", "TIMEOUT_EXCEEDED", "session", "file-timeout");
	profile_of(fixture)->toolhost_limits.file_timeout_ms = 60000;
	open_gate();
	ask_to_read(fixture, "c");
	editor_hears(fixture, "'id':0,'method':'fs/read_text_file','params':{'sessionId':'s',"
			      "'path':'/w/f'}");
	agent_hears_nothing(fixture, 0);
}

static void test_a_cancelled_session_waits_for_no_path(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture, 60000);
	agent_says(fixture, 0,
		"'id':'q','method':'session/request_permission','params':{'sessionId':'s',"
		"'toolCall':{'kind':'read','locations':[{'path':'/w/f'}]},'options':[]}");
	agent_says(fixture, 0,
		"'id':'x','method':'fs/read_text_file','params':{'sessionId':'?','path':'/w/f'}");
	stage_settle(&fixture->stage);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears_failure(fixture, 0, "\"a\"", "PERMISSION_DENIED", "session", "was cancelled");
	agent_hears(fixture, 0, "'id':'q','result':{'outcome':{'outcome':'cancelled'}}");
	agent_hears_nothing(fixture, 0);
	open_gate();
	editor_hears(fixture, "'id':0,'method':'fs/read_text_file','params':{'sessionId':'?',"
			      "'path':'/w/f'}"); // of another session
	editor_hears_nothing(fixture);
}

static void test_what_the_agent_takes_back_waits_for_no_path(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture, 60000);
	ask_to_read(fixture, "b");
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{'requestId':'a'}");
	agent_hears_failure(
		fixture, 0, "\"a\"", "PERMISSION_DENIED", "session", "taken its request back");
	editor_hears_nothing(fixture);
	open_gate();
	editor_hears(fixture, "'id':0,'method':'fs/read_text_file','params':{'sessionId':'s',"
			      "'path':'/w/f'}");
	agent_hears_nothing(fixture, 0);
}

static void test_no_more_than_max_requests_of_an_agent_wait_for_their_paths(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture, 60000);
	profile_of(fixture)->max_requests = 2;
	ask_to_read(fixture, "b");
	ask_to_read(fixture, "c");
	agent_hears_failure(
		fixture, 0, "\"c\"", "RESOURCE_LIMIT_EXCEEDED", "session", "max-requests");
	editor_says(fixture, "'id':7,'method':'_broker/policy/explain','params':{'sessionId':'s',"
			     "'operation':'read','path':'/w/f'}");
	open_gate();
	editor_hears(fixture, "'id':0,'method':'fs/read_text_file','params':{'sessionId':'s',"
			      "'path':'/w/f'}");
	editor_hears(fixture, "'id':1,'method':'fs/read_text_file','params':{'sessionId':'s',"
			      "'path':'/w/f'}");
	editor_hears(fixture,
		"'id':7,'result':{'operation':'fs/read_text_file',"
		"'decision':'allow-once','rule':'mode = pass','source':'mode','remembered':[]}");
	agent_hears_nothing(fixture, 0);
}

static void test_an_inquiry_of_the_editors_outlives_a_cancel(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture, 60000);
	editor_says(fixture, "'id':7,'method':'_broker/policy/explain','params':{'sessionId':'s',"
			     "'operation':'read','path':'/w/f'}");
	stage_settle(&fixture->stage);
	profile_of(fixture)->max_requests = 1;
	editor_says(fixture, "'id':8,'method':'_broker/policy/explain','params':{}");
	editor_hears_failure(fixture, "8", "RESOURCE_LIMIT_EXCEEDED", "relay", "max-requests");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears_failure(fixture, 0, "\"a\"", "PERMISSION_DENIED", "session", "was cancelled");
	editor_hears_nothing(fixture);
	open_gate();
	editor_hears(fixture,
		"'id':7,'result':{'operation':'fs/read_text_file',"
		"'decision':'allow-once','rule':'mode = pass','source':'mode','remembered':[]}");
}

static void test_an_inquiry_is_cancelled_and_what_is_behind_it_goes_on(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture, 60000);
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{'requestId':'a'}");
	agent_hears_failure(fixture, 0, "\"a\"", "PERMISSION_DENIED", "session", "taken");
	editor_says(fixture, "'id':'b','method':'_broker/policy/explain','params':{"
			     "'sessionId':'s','operation':'read','path':'/w/f'}");
	stage_settle(&fixture->stage);
	ask_to_read(fixture, "b");
	stage_settle(&fixture->stage);
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':'b'}");
	editor_hears(
		fixture, "'id':'b','error':{'code':-32800,'message':'the request was cancelled'}");
	agent_hears_nothing(fixture, 0); // the same id, and another sender
	open_gate();
	editor_hears(fixture, "'id':0,'method':'fs/read_text_file','params':{'sessionId':'s',"
			      "'path':'/w/f'}");
}

static void test_an_agent_that_dies_meanwhile_is_forgotten(void **state)
{
	struct fixture *fixture = *state;
	begin_held(fixture, SHORT_MS);
	agent_dies(fixture, 0);
	wait_ms(fixture, 2 * SHORT_MS);
	open_gate();
	editor_hears_nothing(fixture);
}

#define POOL_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_pool, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		POOL_TEST(test_a_call_goes_on_when_its_path_is_known),
		POOL_TEST(test_a_folder_that_does_not_answer_is_not_waited_for),
		POOL_TEST(test_a_cancelled_session_waits_for_no_path),
		POOL_TEST(test_what_the_agent_takes_back_waits_for_no_path),
		POOL_TEST(test_no_more_than_max_requests_of_an_agent_wait_for_their_paths),
		POOL_TEST(test_an_inquiry_of_the_editors_outlives_a_cancel),
		POOL_TEST(test_an_inquiry_is_cancelled_and_what_is_behind_it_goes_on),
		POOL_TEST(test_an_agent_that_dies_meanwhile_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
