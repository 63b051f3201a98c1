/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"

/* ---- requests of an agent ---- */

static void test_its_requests_get_ids_of_the_editors_hop(void **state)
{
	static const char *const ids[] = {"'x'", "0", "-7", "null", "9007199254740993"};
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	for (int i = 0; i < (int)ARRAY_LENGTH(ids); i++) {
		agent_says(fixture, 0, "'id':%s,'method':'_x','params':{'id':%s}", ids[i], ids[i]);
		editor_hears(fixture, "'id':%d,'method':'_x','params':{'id':%s}", i, ids[i]);
	}
	editor_says(fixture, "'id':3,'result':{'id':3}");
	agent_hears(fixture, 0, "'id':null,'result':{'id':3}");
}

static void test_its_messages_pass_to_the_byte(void **state)
{
	static const struct {
		const char *said;
		const char *heard;
	} cases[] = {
		{" {\"method\":\"_\\/x\", \"jsonrpc\":\"2.0\",\"params\":{\"a\":1.0} }",
			" {\"method\":\"_\\/x\", \"jsonrpc\":\"2.0\",\"params\":{\"a\":1.0} }"},
		{"{\"id\" : \"a\", \"method\":\"_x\",\"jsonrpc\":\"2.0\",\"_\":[0 ]}",
			"{\"id\" : 0, \"method\":\"_x\",\"jsonrpc\":\"2.0\",\"_\":[0 ]}"},
	};
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		agent_writes(fixture, 0, span_of(cases[i].said));
		agent_writes(fixture, 0, SPAN_LITERAL("\r\n"));
		char *line = editor_line(fixture);
		assert_string_equal(line, cases[i].heard);
		free(line);
	}
}

static void test_its_errors_pass_as_they_are(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':2,'error':{'code':-32000,'message':'login','data':[{}]}");
	editor_hears(fixture, "'id':'p','error':{'code':-32000,'message':'login','data':[{}]}");
}

static void test_order_is_kept_between_what_it_says_and_what_it_answers(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'method':'session/update','params':{'n':1}");
	agent_says(fixture, 0, "'id':'q','method':'_x'");
	agent_says(fixture, 0, "'method':'session/update','params':{'n':2}");
	agent_says(fixture, 0, "'id':2,'result':{'stopReason':'end_turn'}");
	agent_says(fixture, 0, "'method':'session/update','params':{'n':3}");
	editor_hears(fixture, "'method':'session/update','params':{'n':1}");
	editor_hears(fixture, "'id':0,'method':'_x'");
	editor_hears(fixture, "'method':'session/update','params':{'n':2}");
	editor_hears(fixture, "'id':'p','result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'method':'session/update','params':{'n':3}");
}

/* ---- answers of an agent ---- */

static void test_late_second_and_unknown_answers_are_consumed(void **state)
{
	static const char *const ids[] = {"1", "0", "2", "'1'", "1.0", "01e0", "null", "-1"};
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':7,'method':'_x'");
	agent_hears(fixture, 0, "'id':1,'method':'_x'");
	agent_says(fixture, 0, "'id':1,'result':1");
	editor_hears(fixture, "'id':7,'result':1");
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		agent_says(fixture, 0, "'id':%s,'result':2", ids[i]);
	}
	editor_hears_nothing(fixture);
	agent_hears_nothing(fixture, 0);
}

static void test_a_session_id_that_cannot_be_kept_is_the_agents_business(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':7,'method':'session/new','params':{}");
	agent_hears(fixture, 0, "'id':1,'method':'session/new','params':{}");
	agent_says(fixture, 0, "'id':1,'result':{'sessionId':17}");
	editor_hears(fixture, "'id':7,'result':{'sessionId':17}");
	editor_says(fixture, "'id':8,'method':'session/prompt','params':{'sessionId':17}");
	agent_hears(fixture, 0, "'id':2,'method':'session/prompt','params':{'sessionId':17}");
}

static void test_one_session_too_many_is_refused_even_if_the_agent_has_it(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_sessions = 1;
	begin_with_session(fixture);
	editor_says(fixture, "'id':1,'method':'session/load','params':{'sessionId':'t'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/load','params':{'sessionId':'t'}");
	agent_says(fixture, 0, "'id':2,'result':{}");
	editor_hears_failure(fixture, "1", "RESOURCE_LIMIT_EXCEEDED", "relay", "max-sessions");
	editor_says(fixture, "'id':2,'method':'session/resume','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':3,'method':'session/resume','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':3,'result':{}"); // one that is known is no further one
	editor_hears(fixture, "'id':2,'result':{}");
}

/* ---- cancelling ---- */

static void test_a_cancelled_request_is_named_by_the_editors_id(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	agent_says(fixture, 0, "'id':5,'method':'_x'");
	agent_says(fixture, 0, "'id':'a','method':'_x'");
	editor_hears(fixture, "'id':0,'method':'_x'");
	editor_hears(fixture, "'id':1,'method':'_x'");
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{'requestId':'a'}");
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':1}");
	editor_says(fixture, "'id':1,'error':{'code':-32800,'message':'cancelled'}");
	agent_hears(fixture, 0, "'id':'a','error':{'code':-32800,'message':'cancelled'}");
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{'requestId':'a'}");
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{'requestId':0}");
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{}");
	editor_hears_nothing(fixture);
}

/* ---- elicitation ---- */

static void test_an_elicitation_names_the_editors_request(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':'auth','method':'authenticate','params':{}");
	agent_hears(fixture, 0, "'id':1,'method':'authenticate','params':{}");
	agent_says(fixture, 0,
		"'id':9,'method':'elicitation/create','params':{'requestId':1,'mode':'form'}");
	editor_hears(fixture,
		"'id':0,'method':'elicitation/create','params':{'requestId':'auth','mode':'form'}");
	editor_says(fixture, "'id':0,'result':{'action':'accept'}");
	agent_hears(fixture, 0, "'id':9,'result':{'action':'accept'}");
	agent_says(fixture, 0, "'id':10,'method':'elicitation/create','params':{'mode':'url'}");
	editor_hears(fixture, "'id':1,'method':'elicitation/create','params':{'mode':'url'}");
}

static void test_an_elicitation_for_a_request_that_is_not_open_is_refused(void **state)
{
	static const char *const ids[] = {"0", "'0'", "2", "1.0", "null"};
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		agent_says(fixture, 0,
			"'id':9,'method':'elicitation/create','params':{'requestId':%s}", ids[i]);
		agent_hears_failure(
			fixture, 0, "9", "INVALID_PARAMS", "relay", "requestId | no request");
	}
	editor_hears_nothing(fixture);
}

static void test_the_request_id_of_other_methods_is_left_alone(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	agent_says(fixture, 0, "'id':9,'method':'mcp/message','params':{'requestId':77}");
	editor_hears(fixture, "'id':0,'method':'mcp/message','params':{'requestId':77}");
	editor_says(fixture, "'method':'mcp/message','params':{'requestId':0}");
	agent_hears(fixture, 0, "'method':'mcp/message','params':{'requestId':0}");
}

/* ---- limits ---- */

static void test_one_request_too_many_of_an_agent_is_refused(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_requests = 2;
	begin_greeted(fixture);
	for (int i = 0; i < 3; i++) {
		agent_says(fixture, 0, "'id':'%d','method':'_x'", i);
	}
	agent_hears_failure(fixture, 0, "\"2\"", "RESOURCE_LIMIT_EXCEEDED", "relay", "2 requests");
	editor_hears(fixture, "'id':0,'method':'_x'");
	editor_hears(fixture, "'id':1,'method':'_x'");
	editor_hears_nothing(fixture);
}

static void test_a_message_as_large_as_allowed_passes(void **state)
{
	enum { MAX_MESSAGE = 300 * 1024 };
	struct fixture *fixture = *state;
	profile_of(fixture)->max_message = MAX_MESSAGE;
	begin_greeted(fixture);
	size_t around = strlen("{\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{\"t\":\"\"}}");
	char *text = mem_alloc_zero(MAX_MESSAGE - around + 1);
	memset(text, 'x', MAX_MESSAGE - around);
	agent_says(fixture, 0, "'method':'_x','params':{'t':'%s'}", text);
	editor_hears(fixture, "'method':'_x','params':{'t':'%s'}", text);
	editor_says(fixture, "'method':'_x','params':{'t':'%s'}", text);
	agent_hears(fixture, 0, "'method':'_x','params':{'t':'%s'}", text);
	agent_says(fixture, 0, "'method':'_x','params':{'t':'%s '}", text);
	agent_says(fixture, 0, "'method':'_y'");
	editor_hears(fixture, "'method':'_y'");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_its_requests_get_ids_of_the_editors_hop),
		RELAY_TEST(test_its_messages_pass_to_the_byte),
		RELAY_TEST(test_its_errors_pass_as_they_are),
		RELAY_TEST(test_order_is_kept_between_what_it_says_and_what_it_answers),
		RELAY_TEST(test_late_second_and_unknown_answers_are_consumed),
		RELAY_TEST(test_a_session_id_that_cannot_be_kept_is_the_agents_business),
		RELAY_TEST(test_one_session_too_many_is_refused_even_if_the_agent_has_it),
		RELAY_TEST(test_a_cancelled_request_is_named_by_the_editors_id),
		RELAY_TEST(test_an_elicitation_names_the_editors_request),
		RELAY_TEST(test_an_elicitation_for_a_request_that_is_not_open_is_refused),
		RELAY_TEST(test_the_request_id_of_other_methods_is_left_alone),
		RELAY_TEST(test_one_request_too_many_of_an_agent_is_refused),
		RELAY_TEST(test_a_message_as_large_as_allowed_passes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
