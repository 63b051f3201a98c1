/* SPDX-License-Identifier: MIT */
#include "broker/session/usage.h"

#include "base/json_doc.h"
#include "tests/unit/relay_fixture.h"

/* What is counted of the messages that pass, and for which session. */

static char *line; // owned; what a document of usage borrows from

static struct json_doc *usage(struct fixture *fixture)
{
	editor_says(fixture, "'id':'u','method':'_broker/usage','params':{}");
	struct error err;
	line = editor_line(fixture);
	struct json_doc *doc = json_doc_parse(span_of(line), &err);
	assert_non_null(doc);
	return doc;
}

static void drop(struct json_doc *doc)
{
	json_doc_destroy(doc);
	free(line);
}

static long long number(const struct json_doc *doc, json_node from, const char *path)
{
	return json_int(doc, json_path(doc, from, path), -1);
}

/* A member of a session's, "prompts" or "bytes.fromAgent". */
static long long of_session(struct fixture *fixture, const char *id, const char *path)
{
	struct json_doc *doc = usage(fixture);
	long long value = -1;
	json_node sessions = json_path(doc, 0, "result.sessions");
	for (json_node one = json_first(doc, sessions); one != JSON_NODE_NONE;
		one = json_next(doc, one)) {
		if (json_string_is(doc, json_get(doc, one, "sessionId"), id)) {
			value = number(doc, one, path);
		}
	}
	drop(doc);
	return value;
}

static void update(struct fixture *fixture, const char *id)
{
	agent_says(fixture, 0, "'method':'session/update','params':{'sessionId':'%s'}", id);
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'%s'}", id);
}

static void test_bytes_are_of_the_session_that_a_message_names(void **state)
{
	struct fixture *fixture = *state;
	begin_with_sessions(fixture, (const char *const[]){"s", "t", NULL});
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\","
				   "\"params\":{\"sessionId\":\"s\"}}";
	assert_int_equal(of_session(fixture, "s", "bytes.fromAgent"), 0);
	update(fixture, "s");
	update(fixture, "s");
	update(fixture, "t");
	update(fixture, "s");
	assert_int_equal(of_session(fixture, "s", "bytes.fromAgent"), 3 * strlen(text));
	assert_int_equal(of_session(fixture, "t", "bytes.fromAgent"), strlen(text));
	update(fixture, "nobody");
	assert_int_equal(of_session(fixture, "t", "bytes.fromAgent"), strlen(text));
}

static void test_a_session_that_is_forgotten_is_not_remembered(void **state)
{
	struct fixture *fixture = *state;
	begin_with_sessions(fixture, (const char *const[]){"s", "t", NULL});
	update(fixture, "s");
	editor_says(fixture, "'id':1,'method':'session/close','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':3,'method':'session/close','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':3,'result':{}");
	editor_hears(fixture, "'id':1,'result':{}");
	update(fixture, "s");
	assert_int_equal(of_session(fixture, "s", "prompts"), -1);
	assert_int_equal(of_session(fixture, "t", "bytes.fromAgent"), 0);
}

static void test_prompts_and_what_an_agent_asks_for(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	editor_says(fixture, "'id':1,'method':'session/prompt','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	agent_says(fixture, 0,
		"'id':7,'method':'fs/read_text_file','params':{'sessionId':'s','path':'/w/a'}");
	editor_hears(fixture,
		"'id':0,'method':'fs/read_text_file','params':{'sessionId':'s','path':'/w/a'}");
	agent_says(fixture, 0, "'id':8,'method':'_theirs','params':{}");
	editor_hears(fixture, "'id':1,'method':'_theirs','params':{}");
	assert_int_equal(of_session(fixture, "s", "prompts"), 1);
	struct json_doc *doc = usage(fixture);
	json_node tools = json_path(doc, 0, "result.toolCalls");
	assert_int_equal(json_count(doc, tools), USAGE_TOOL_COUNT);
	assert_int_equal(json_int(doc, json_get(doc, tools, "fs/read_text_file"), -1), 1);
	assert_int_equal(json_int(doc, json_get(doc, tools, "other"), -1), 1);
	drop(doc);
}

static void test_the_bytes_of_an_agent_that_has_ended_stay(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	struct json_doc *doc = usage(fixture);
	long long before = number(doc, 0, "result.bytes.fromAgents");
	drop(doc);
	assert_true(before > 0);
	agent_dies(fixture, 0);
	stage_settle(&fixture->stage);
	doc = usage(fixture);
	assert_true(number(doc, 0, "result.bytes.fromAgents") >= before);
	assert_true(number(doc, 0, "result.bytes.toAgents") > 0);
	drop(doc);
}

static long long from_agents(struct fixture *fixture)
{
	struct json_doc *doc = usage(fixture);
	long long count = number(doc, 0, "result.bytes.fromAgents");
	drop(doc);
	return count;
}

static void test_an_agent_that_is_started_anew_adds_to_what_it_was_before(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	long long before = from_agents(fixture);
	assert_true(before > 0);
	agent_dies(fixture, 0);
	stage_settle(&fixture->stage);
	editor_says(fixture, "'id':1,'method':'session/new','params':{'cwd':'/w'}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	assert_int_equal(from_agents(fixture), before);
	agent_says(fixture, 1, "'id':0,%s", initialize_result);
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{'cwd':'/w'}");
	assert_true(from_agents(fixture) > before);
	agent_says(fixture, 1, "'id':1,'result':{'sessionId':'n'}");
	editor_hears(fixture, "'id':1,'result':{'sessionId':'n'}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_bytes_are_of_the_session_that_a_message_names),
		RELAY_TEST(test_a_session_that_is_forgotten_is_not_remembered),
		RELAY_TEST(test_prompts_and_what_an_agent_asks_for),
		RELAY_TEST(test_the_bytes_of_an_agent_that_has_ended_stay),
		RELAY_TEST(test_an_agent_that_is_started_anew_adds_to_what_it_was_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
