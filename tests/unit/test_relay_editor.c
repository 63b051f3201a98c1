/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"

#include <stdio.h>

/* ---- ids and bytes ---- */

static void test_requests_get_ids_of_the_agents_hop_and_answers_the_editors(void **state)
{
	static const char *const ids[] = {
		"'x'", "-7", "1.50", "9007199254740993", "null", "''", "'a\\u0062'", "0"};
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	for (int i = 0; i < (int)ARRAY_LENGTH(ids); i++) {
		editor_says(fixture, "'id':%s,'method':'x/y'", ids[i]);
		agent_hears(fixture, 0, "'id':%d,'method':'x/y'", i + 1);
	}
	for (int i = (int)ARRAY_LENGTH(ids) - 1; i >= 0; i--) { // in another order
		agent_says(fixture, 0, "'id':%d,'result':%d", i + 1, i);
		editor_hears(fixture, "'id':%s,'result':%d", ids[i], i);
	}
}

static void test_everything_but_the_id_passes_to_the_byte(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_writes(fixture,
		SPAN_LITERAL(
			"\t{ \"method\" :\"x\\/y\", \"params\":{\"a\":1.0e0,\"b\":\"\\u0061\xc3"
			"\xa9\"},\"id\" : \"q\" ,\"jsonrpc\":\"2.0\",\"future\":[ 1 ] } \r\n"));
	char *line = agent_next_line(fixture, 0);
	assert_string_equal(line, "\t{ \"method\" :\"x\\/y\", \"params\":{\"a\":1.0e0,\"b\":\""
				  "\\u0061\xc3\xa9\"},\"id\" : 1 ,\"jsonrpc\":\"2.0\",\"future\":[ "
				  "1 ] } ");
	free(line);
	agent_writes(fixture, 0,
		SPAN_LITERAL(
			"{\"result\" :{ \"b\":1, \"a\":1.00 },\"jsonrpc\":\"2.0\", \"id\":1}\n"));
	line = editor_line(fixture);
	assert_string_equal(
		line, "{\"result\" :{ \"b\":1, \"a\":1.00 },\"jsonrpc\":\"2.0\", \"id\":\"q\"}");
	free(line);
}

static void test_a_notification_passes_to_the_byte(void **state)
{
	struct fixture *fixture = *state;
	static const char text[] = "{\"method\":\"_x/y\", \"jsonrpc\":\"2.0\" , \"params\":[1e5]}";
	begin_greeted(fixture);
	editor_writes(fixture, SPAN_LITERAL(text));
	editor_writes(fixture, SPAN_LITERAL("\n"));
	char *line = agent_next_line(fixture, 0);
	assert_string_equal(line, text);
	free(line);
}

static void test_a_large_request_passes_whole(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	char *text = mem_alloc_zero(500001);
	memset(text, 'x', 500000);
	editor_says(fixture, "'id':'big','method':'x/y','params':{'text':'%s'}", text);
	agent_hears(fixture, 0, "'id':1,'method':'x/y','params':{'text':'%s'}", text);
	agent_says(fixture, 0, "'id':1,'result':'%s'", text);
	editor_hears(fixture, "'id':'big','result':'%s'", text);
	free(text);
}

/* ---- cancelling ---- */

static void test_a_cancelled_request_is_named_by_the_agents_id(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':'a','method':'x/y'");
	editor_says(fixture, "'id':1,'method':'x/y'");
	agent_hears(fixture, 0, "'id':1,'method':'x/y'");
	agent_hears(fixture, 0, "'id':2,'method':'x/y'");
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':1}");
	agent_hears(fixture, 0, "'method':'$/cancel_request','params':{'requestId':2}");
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':'a','x':1}");
	agent_hears(fixture, 0, "'method':'$/cancel_request','params':{'requestId':1,'x':1}");
	agent_says(fixture, 0, "'id':1,'error':{'code':-32800,'message':'cancelled'}");
	editor_hears(fixture, "'id':'a','error':{'code':-32800,'message':'cancelled'}");
}

static void test_a_cancelled_request_that_is_not_open_is_nobodys_business(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':7,'method':'x/y'");
	agent_hears(fixture, 0, "'id':1,'method':'x/y'");
	agent_says(fixture, 0, "'id':1,'result':{}");
	editor_hears(fixture, "'id':7,'result':{}");
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':7}");
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':1}");
	editor_says(fixture, "'method':'$/cancel_request','params':{}");
	agent_hears_nothing(fixture, 0);
	editor_hears_nothing(fixture);
}

/* ---- whose methods they are ---- */

static void test_the_brokers_own_methods_do_not_pass(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'_broker/no/such','params':{}");
	editor_hears_failure(fixture, "1", "METHOD_NOT_FOUND", "relay", "_broker/no/such");
	editor_says(fixture, "'method':'_broker/no/such','params':{}");
	editor_hears_nothing(fixture);
	agent_hears_nothing(fixture, 0);
}

static void test_other_extensions_pass(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'_brokers/x'");
	agent_hears(fixture, 0, "'id':1,'method':'_brokers/x'");
	editor_says(fixture, "'method':'_x'");
	agent_hears(fixture, 0, "'method':'_x'");
}

static void test_a_request_that_is_called_like_a_notification_is_nobodys(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'$/cancel_request','params':{'requestId':1}");
	agent_hears(fixture, 0, "'id':1,'method':'$/cancel_request','params':{'requestId':1}");
	editor_says(fixture, "'id':2,'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/cancel','params':{'sessionId':'s'}");
}

/* ---- answers ---- */

static void test_an_answer_goes_back_under_the_agents_own_id(void **state)
{
	static const char *const ids[] = {"'x'", "-7", "1.50", "0"};
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	for (int i = 0; i < (int)ARRAY_LENGTH(ids); i++) {
		agent_says(fixture, 0, "'id':%s,'method':'x/y'", ids[i]);
		editor_hears(fixture, "'id':%d,'method':'x/y'", i);
	}
	for (int i = (int)ARRAY_LENGTH(ids) - 1; i >= 0; i--) {
		editor_says(fixture, "'result':{ },'id':%d", i);
		agent_hears(fixture, 0, "'result':{ },'id':%s", ids[i]);
	}
}

static void test_late_second_and_unknown_answers_are_consumed(void **state)
{
	static const char *const ids[] = {"0", "1", "'0'", "0.0", "null", "-1"};
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a','method':'x/y'");
	editor_hears(fixture, "'id':0,'method':'x/y'");
	editor_says(fixture, "'id':0,'error':{'code':1,'message':'no'}");
	agent_hears(fixture, 0, "'id':'a','error':{'code':1,'message':'no'}");
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		editor_says(fixture, "'id':%s,'result':{}", ids[i]);
	}
	agent_hears_nothing(fixture, 0);
	editor_hears_nothing(fixture);
}

/* ---- sessions ---- */

static void test_a_session_of_a_dead_agent_is_refused_and_starts_nothing(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':5,'method':'session/prompt','params':{'sessionId':'s'}");
	editor_hears_failure(fixture, "5", "SESSION_LOST", "session", "session \\\"s\\\"");
	editor_says(fixture, "'id':6,'method':'_x','params':{'sessionId':'s'}");
	editor_hears_failure(fixture, "6", "SESSION_LOST", "session", "nor session/load");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_hears_nothing(fixture);
	assert_int_equal(fixture->stage.actor_count, 1);
}

static void test_loading_a_session_of_a_dead_agent_starts_another(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':5,'method':'session/load','params':{'sessionId':'s'}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_says(fixture, 1, "'id':0,%s", initialize_result);
	agent_hears(fixture, 1, "'id':1,'method':'session/load','params':{'sessionId':'s'}");
	agent_says(fixture, 1, "'id':1,'result':{}");
	editor_hears(fixture, "'id':5,'result':{}");
	editor_says(fixture, "'id':6,'method':'session/prompt','params':{'sessionId':'s'}");
	agent_hears(fixture, 1, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
}

static void test_a_closed_session_is_unknown_again(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_sessions = 1;
	begin_with_session(fixture);
	editor_says(fixture, "'id':1,'method':'session/close','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/close','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':2,'result':{}");
	editor_hears(fixture, "'id':1,'result':{}");
	editor_says(fixture, "'id':2,'method':'session/new','params':{}");
	agent_hears(fixture, 0, "'id':3,'method':'session/new','params':{}");
}

static void test_a_session_that_could_not_be_closed_stays(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_sessions = 1;
	begin_with_session(fixture);
	editor_says(fixture, "'id':1,'method':'session/delete','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/delete','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':2,'error':{'code':-1,'message':'no'}");
	editor_hears(fixture, "'id':1,'error':{'code':-1,'message':'no'}");
	editor_says(fixture, "'id':2,'method':'session/new','params':{}");
	editor_hears_failure(fixture, "2", "RESOURCE_LIMIT_EXCEEDED", "relay", "max-sessions");
}

/* ---- limits ---- */

static void test_one_session_too_many_is_refused_before_the_agent_makes_it(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_sessions = 2;
	begin_with_sessions(fixture, (const char *const[]){"a", "b", NULL});
	editor_says(fixture, "'id':1,'method':'session/new','params':{}");
	editor_hears_failure(
		fixture, "1", "RESOURCE_LIMIT_EXCEEDED", "relay", "2 sessions | max-sessions");
	editor_says(
		fixture, "'id':2,'method':'session/fork','params':{'sessionId':'a','cwd':'/w'}");
	editor_hears_failure(fixture, "2", "RESOURCE_LIMIT_EXCEEDED", "relay", "max-sessions");
	agent_hears_nothing(fixture, 0);
}

static void test_one_request_too_many_is_refused(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_requests = 2;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'x/y'");
	editor_says(fixture, "'id':2,'method':'x/y'");
	editor_says(fixture, "'id':3,'method':'x/y'");
	editor_hears_failure(fixture, "3", "RESOURCE_LIMIT_EXCEEDED", "relay", "2 requests");
	agent_hears(fixture, 0, "'id':1,'method':'x/y'");
	agent_says(fixture, 0, "'id':1,'result':1");
	editor_hears(fixture, "'id':1,'result':1");
	editor_says(fixture, "'id':4,'method':'x/y'");
	agent_hears(fixture, 0, "'id':2,'method':'x/y'");
	agent_hears(fixture, 0, "'id':3,'method':'x/y'");
}

static void test_a_flood_of_directories_is_refused(void **state)
{
	struct fixture *fixture = *state;
	char list[2048] = "";
	size_t len = 0;
	for (int i = 0; i < 64; i++) {
		len += (size_t)snprintf(
			list + len, sizeof(list) - len, "%s'/d%d'", i > 0 ? "," : "", i);
	}
	begin_greeted(fixture);
	editor_says(fixture,
		"'id':1,'method':'session/new','params':{'cwd':'/w','additionalDirectories':[%s]}",
		list);
	editor_hears_failure(
		fixture, "1", "RESOURCE_LIMIT_EXCEEDED", "relay", "more than 64 directories");
	agent_hears_nothing(fixture, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_requests_get_ids_of_the_agents_hop_and_answers_the_editors),
		RELAY_TEST(test_everything_but_the_id_passes_to_the_byte),
		RELAY_TEST(test_a_notification_passes_to_the_byte),
		RELAY_TEST(test_a_large_request_passes_whole),
		RELAY_TEST(test_a_cancelled_request_is_named_by_the_agents_id),
		RELAY_TEST(test_a_cancelled_request_that_is_not_open_is_nobodys_business),
		RELAY_TEST(test_the_brokers_own_methods_do_not_pass),
		RELAY_TEST(test_other_extensions_pass),
		RELAY_TEST(test_a_request_that_is_called_like_a_notification_is_nobodys),
		RELAY_TEST(test_an_answer_goes_back_under_the_agents_own_id),
		RELAY_TEST(test_late_second_and_unknown_answers_are_consumed),
		RELAY_TEST(test_a_session_of_a_dead_agent_is_refused_and_starts_nothing),
		RELAY_TEST(test_loading_a_session_of_a_dead_agent_starts_another),
		RELAY_TEST(test_a_closed_session_is_unknown_again),
		RELAY_TEST(test_a_session_that_could_not_be_closed_stays),
		RELAY_TEST(test_one_session_too_many_is_refused_before_the_agent_makes_it),
		RELAY_TEST(test_one_request_too_many_is_refused),
		RELAY_TEST(test_a_flood_of_directories_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
