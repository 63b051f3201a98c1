/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"

#include <stdio.h>

#include "broker/config/mcp_config.h"
#include "tests/support/facts.h"

enum { SHORT_MS = 30 };

/* An isolated sandbox: actor 0 is the agent; the next actors are the lookups of commands. */
static int set_up_far(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	fixture->stage.capabilities.isolated = true;
	fixture->stage.capabilities.maps_paths = true;
	fixture->stage.capabilities.shares_loopback = false;
	profile_of(fixture)->toolhost = TOOLHOST_EDITOR;
	return 0;
}

/* The profile gets a server "own" of this type, at http://own/ or with the command "own". */
static void give_server(struct fixture *fixture, enum mcp_type type)
{
	struct profile *profile = profile_of(fixture);
	struct settings settings;
	struct error err;
	const char *const environment[] = {NULL};
	settings_init(&settings);
	settings_add(&settings, "type", mcp_type_name(type), "test");
	settings_add(&settings, type == MCP_STDIO ? "command" : "url",
		type == MCP_STDIO ? "own" : "http://own/", "test");
	profile->mcp = mem_alloc_zero(sizeof(*profile->mcp));
	profile->mcp_count = 1;
	assert_true(mcp_server_load(&profile->mcp[0], "own", &settings, environment, &err));
	settings_finish(&settings);
}

static void new_session(struct fixture *fixture, const char *servers)
{
	editor_says(fixture,
		"'id':1,'method':'session/new','params':{'cwd':'/w','mcpServers':[%s]}", servers);
}

static void answers(struct fixture *fixture, int index, const char *text)
{
	struct actor *actor = agent(fixture, index);
	actor_writes(actor, span_of(text));
	actor_dies(actor, 0, 0);
}

/* The agent hears session/new with these servers, and its answer opens the session "s". */
static void opens(struct fixture *fixture, const char *servers)
{
	agent_hears(fixture, 0,
		"'id':1,'method':'session/new','params':{'cwd':'/runtime/w','mcpServers':[%s]}",
		servers);
	agent_says(fixture, 0, "'id':1,'result':{'sessionId':'s'}");
	editor_hears(fixture, "'id':1,'result':{'sessionId':'s'}");
}

static void editor_is_told(struct fixture *fixture, int number, const char *facts)
{
	char start[256];
	snprintf(start, sizeof(start),
		"{\"jsonrpc\":\"2.0\",\"method\":\"session/"
		"update\",\"params\":{\"sessionId\":\"s\","
		"\"update\":{\"sessionUpdate\":\"tool_call\","
		"\"toolCallId\":\"acp-broker-notice-%d\",\"title\":\"",
		number);
	char *line = editor_line(fixture);
	assert_non_null(line);
	if (strncmp(line, start, strlen(start)) != 0 || !text_names(line, facts) ||
		!strstr(line, "\"status\":\"failed\"")) {
		fail_msg("%s", line);
	}
	free(line);
}

static void test_here_nothing_is_asked_and_nothing_touched(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'session/new','params':{'cwd':'/w','mcpServers':["
			     "{'command':'gone'},{'type':'http','url':'http://localhost'}]}");
	agent_hears(fixture, 0,
		"'id':1,'method':'session/new','params':{'cwd':'/w','mcpServers':["
		"{'command':'gone'},{'type':'http','url':'http://localhost'}]}");
	assert_int_equal(fixture->stage.actor_count, 1);
}

static void test_what_is_missing_is_left_out_and_told_after_the_answer(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	new_session(fixture, "{'name':'a','command':'gone'},{'name':'b','command':'/w/x'},"
			     "{'name':'c','type':'sse','url':'http://127.0.0.1:3/'}");
	assert_string_equal(agent(fixture, 1)->argv[5], "gone");
	assert_string_equal(agent(fixture, 1)->argv[7], "/runtime/w/x");
	agent_hears_nothing(fixture, 0);
	answers(fixture, 1, "ny.");
	opens(fixture, "{'name':'b','command':'/runtime/w/x'}");
	editor_is_told(fixture, 1, "MCP server \\\"a\\\" was left out");
	editor_is_told(fixture, 2, "MCP server \\\"c\\\" was left out");
	editor_hears_nothing(fixture);
	editor_says(fixture, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
}

static void test_every_method_that_opens_a_session_is_looked_at(void **state)
{
	static const char *const names[] = {"session/load", "session/resume", "session/fork"};
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	for (int i = 0; i < 3; i++) {
		editor_says(fixture,
			"'id':1,'method':'%s','params':{'sessionId':'s','cwd':'/w','mcpServers':["
			"{'name':'a','command':'gone'}]}",
			names[i]);
		answers(fixture, 1 + i, "n.");
		agent_hears(fixture, 0,
			"'id':%d,'method':'%s','params':{'sessionId':'s','cwd':'/runtime/w',"
			"'mcpServers':[]}",
			1 + i, names[i]);
		agent_says(fixture, 0, "'id':%d,'result':{'sessionId':'s'}", 1 + i);
		editor_hears(fixture, "'id':1,'result':{'sessionId':'s'}");
		editor_is_told(fixture, 1 + i, "MCP server \\\"a\\\" was left out");
	}
}

static void test_a_list_without_commands_is_not_asked_about(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	new_session(fixture, "");
	opens(fixture, "");
	editor_hears_nothing(fixture);
	assert_int_equal(fixture->stage.actor_count, 1);
}

static void test_without_an_answer_servers_are_kept_and_that_is_told(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->mcp_timeout_ms = SHORT_MS;
	begin_greeted(fixture);
	new_session(fixture, "{'command':'gone'}");
	opens(fixture, "{'command':'gone'}");
	editor_is_told(fixture, 1, "sandbox | 30 ms | mcp-timeout");
}

static void test_a_session_the_agent_refuses_is_told_nothing(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	new_session(fixture, "{'command':'gone'}");
	answers(fixture, 1, "n.");
	agent_hears(fixture, 0,
		"'id':1,'method':'session/new','params':{'cwd':'/runtime/w','mcpServers':[]}");
	agent_says(fixture, 0, "'id':1,'error':{'code':-32603,'message':'no'}");
	editor_hears(fixture, "'id':1,'error':{'code':-32603,'message':'no'}");
	editor_hears_nothing(fixture);
}

static void test_its_agent_may_die_while_the_sandbox_is_asked(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	new_session(fixture, "{'command':'gone'}");
	struct actor *lookup = agent(fixture, 1);
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "1", "AGENT_EXITED", "relay", "");
	editor_hears_nothing(fixture);
	assert_non_null(strstr(lookup->told, "destroyed"));
}

static void test_the_broker_may_end_while_the_sandbox_is_asked(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	new_session(fixture, "{'command':'gone'}");
	struct actor *lookup = agent(fixture, 1);
	editor_closes(fixture);
	agent_hears_end(fixture, 0);
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "1", "AGENT_EXITED", "relay", "");
	stage_until(&fixture->stage, &fixture->is_finished);
	assert_non_null(strstr(lookup->told, "destroyed"));
}

static void test_two_sessions_are_asked_about_at_once(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	new_session(fixture, "{'command':'one'}");
	agent(fixture, 1);
	editor_says(fixture, "'id':2,'method':'session/new','params':{'cwd':'/v','mcpServers':["
			     "{'command':'two'}]}");
	answers(fixture, 2, "y.");
	agent_hears(fixture, 0,
		"'id':1,'method':'session/new','params':{'cwd':'/runtime/v','mcpServers':["
		"{'command':'two'}]}");
	answers(fixture, 1, "y.");
	agent_hears(fixture, 0,
		"'id':2,'method':'session/new','params':{'cwd':'/runtime/w','mcpServers':["
		"{'command':'one'}]}");
}

/* ---- servers of the profile ---- */

static void test_the_profiles_servers_are_added_here_too(void **state)
{
	struct fixture *fixture = *state;
	give_server(fixture, MCP_STDIO);
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'session/resume','params':{'sessionId':'s'}");
	agent_hears(fixture, 0,
		"'id':1,'method':'session/resume','params':{'mcpServers':[{'name':'own',"
		"'command':'own','args':[],'env':[]}],'sessionId':'s'}");
}

static void test_a_type_the_agent_does_not_take_is_not_sent(void **state)
{
	struct fixture *fixture = *state;
	give_server(fixture, MCP_SSE);
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'session/new','params':{'mcpServers':[]}");
	agent_hears(fixture, 0, "'id':1,'method':'session/new','params':{'mcpServers':[]}");
	agent_says(fixture, 0, "'id':1,'result':{'sessionId':'s'}");
	editor_hears(fixture, "'id':1,'result':{'sessionId':'s'}");
	editor_is_told(fixture, 1, "agent | type sse");
}

static void test_a_type_the_agent_takes_is_sent(void **state)
{
	struct fixture *fixture = *state;
	give_server(fixture, MCP_HTTP);
	begin(fixture);
	editor_says(fixture, "'id':0,%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	agent_says(fixture, 0,
		"'id':0,'result':{'protocolVersion':1,'agentCapabilities':{"
		"'mcpCapabilities':{'http':true,'sse':false}}}");
	free(editor_line(fixture));
	editor_says(fixture, "'id':1,'method':'session/new','params':{'mcpServers':[]}");
	agent_hears(fixture, 0,
		"'id':1,'method':'session/new','params':{'mcpServers':[{'type':'http','name':'own',"
		"'url':'http://own/','headers':[]}]}");
}

#define FAR_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_far, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_here_nothing_is_asked_and_nothing_touched),
		FAR_TEST(test_what_is_missing_is_left_out_and_told_after_the_answer),
		FAR_TEST(test_every_method_that_opens_a_session_is_looked_at),
		FAR_TEST(test_a_list_without_commands_is_not_asked_about),
		FAR_TEST(test_without_an_answer_servers_are_kept_and_that_is_told),
		FAR_TEST(test_a_session_the_agent_refuses_is_told_nothing),
		FAR_TEST(test_its_agent_may_die_while_the_sandbox_is_asked),
		FAR_TEST(test_the_broker_may_end_while_the_sandbox_is_asked),
		FAR_TEST(test_two_sessions_are_asked_about_at_once),
		RELAY_TEST(test_the_profiles_servers_are_added_here_too),
		RELAY_TEST(test_a_type_the_agent_does_not_take_is_not_sent),
		RELAY_TEST(test_a_type_the_agent_takes_is_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
