/* SPDX-License-Identifier: MIT */
#include "tests/unit/grant_fixture.h"

#include <stdio.h>

/*
 * Requests of an agent under a policy: which pass, which are refused, and what the user is asked.
 */

/* ---- decisions of the policy alone ---- */

static void test_what_is_allowed_passes_and_what_is_denied_is_refused(void **state)
{
	static const struct {
		const char *method;
		const char *params;
		const char *words; // of the refusal; NULL: it passes
	} cases[] = {
		{"fs/read_text_file", "{'path':'/w/a'}", NULL},
		{"fs/write_text_file", "{'path':'/w/a','content':''}", NULL},
		{"fs/write_text_file", "{'path':'/w/.env','content':''}",
			"fs/write_text_file /w/.env: refused by policy (deny = write **/.env)"},
		{"terminal/create", "{'command':'ls','args':['-l']}", NULL},
		{"terminal/create", "{'command':'git','args':['push','-f']}",
			"git push -f: refused by policy (deny = terminal git push)"},
		{"terminal/create", "{'command':'git push'}", "(deny = terminal git push)"},
		{"terminal/output", "{'terminalId':'t'}", NULL},
		{"_x", "{'path':'/w/.env'}", NULL},
	};
	struct fixture *fixture = *state;
	int passed = 0;
	begin_with_policy(fixture,
		POLICY("mode = approve-all", "deny = write **/.env", "deny = terminal git push"));
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		agent_says(fixture, 0, "'id':'q','method':'%s','params':%s", cases[i].method,
			cases[i].params);
		if (cases[i].words) {
			agent_hears_failure(fixture, 0, "\"q\"", "PERMISSION_DENIED", "session",
				cases[i].words);
		} else {
			editor_hears(fixture, "'id':%d,'method':'%s','params':%s", passed++,
				cases[i].method, cases[i].params);
		}
	}
	editor_hears_nothing(fixture);
	agent_hears_nothing(fixture, 0);
}

/* Requests that are not as ACP has them, or whose subject the policy cannot know. */
static const struct {
	const char *method;
	const char *params;
} unreadable[] = {
	{"fs/read_text_file", "{}"},
	{"fs/write_text_file", "{'path':7,'content':''}"},
	{"terminal/create", "{'args':[]}"},
	{"terminal/create", "{'command':'ls','args':'-l'}"},
	{"terminal/create", "{'command':'ls','cwd':7}"},
	{"session/request_permission", "{'options':[]}"},
	{"session/request_permission",
		"{'sessionId':'s','toolCall':{'locations':[{'path':null}]}}"},
	{"session/request_permission", "{'sessionId':'s','toolCall':{'rawInput':{'command':"
				       "['a',1]}}}"},
	{"session/request_permission", "{'sessionId':'s','toolCall':{'rawInput':{'command':"
				       "'a\\u0000'}}}"},
};

static void hear_unreadable_pass(struct fixture *fixture)
{
	for (size_t i = 0; i < ARRAY_LENGTH(unreadable); i++) {
		agent_says(fixture, 0, "'id':'q','method':'%s','params':%s", unreadable[i].method,
			unreadable[i].params);
		editor_hears(fixture, "'id':%zu,'method':'%s','params':%s", i, unreadable[i].method,
			unreadable[i].params);
	}
	agent_hears_nothing(fixture, 0);
}

static void test_without_a_policy_all_that_cannot_be_judged_passes(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	hear_unreadable_pass(fixture);
}

static void test_what_cannot_be_judged_passes_where_nothing_hangs_on_it(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = pass", "deny = grant fetch", "allow = read"));
	for (size_t i = 0; i < ARRAY_LENGTH(unreadable); i++) {
		if (strcmp(unreadable[i].params, "{'options':[]}") == 0) {
			continue; // it may be for a tool that fetches
		}
		agent_says(fixture, 0, "'id':'q','method':'%s','params':%s", unreadable[i].method,
			unreadable[i].params);
		free(editor_line(fixture));
	}
	agent_hears_nothing(fixture, 0);
}

static void test_what_cannot_be_judged_is_guarded(void **state)
{
	static const char *const rules[] = {"deny = read **/.env", "deny = write **/.env",
		"deny = terminal rm", "mode = approve-all", NULL};
	struct fixture *fixture = *state;
	begin_with_policy(fixture, rules);
	for (size_t i = 0; i < ARRAY_LENGTH(unreadable); i++) {
		agent_says(fixture, 0, "'id':7,'method':'%s','params':%s", unreadable[i].method,
			unreadable[i].params);
		if (strcmp(unreadable[i].method, "session/request_permission") == 0) {
			agent_hears(
				fixture, 0, "'id':7,'result':{'outcome':{'outcome':'cancelled'}}");
		} else {
			agent_hears_failure(fixture, 0, "7", "PERMISSION_DENIED", "session",
				"refused by policy (deny = ");
		}
	}
	editor_hears_nothing(fixture);
}

static void test_what_cannot_be_judged_cannot_be_asked_about(void **state)
{
	static const char *const words[] = {"params.path is missing", "params.path is not a string",
		"params.command is missing", "params.args is not an array",
		"params.cwd is not a string"};
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all", "ask = read"));
	for (size_t i = 0; i < ARRAY_LENGTH(unreadable); i++) {
		agent_says(fixture, 0, "'id':7,'method':'%s','params':%s", unreadable[i].method,
			unreadable[i].params);
		if (i < ARRAY_LENGTH(words)) {
			agent_hears_failure(fixture, 0, "7", "INVALID_PARAMS", "session", words[i]);
		} else {
			free(editor_line(fixture)); // the agent's own question is unchanged
		}
	}
	agent_hears_nothing(fixture, 0);
}

/* ---- the agent's own questions ---- */

static void ask_permission(struct fixture *fixture, const char *options)
{
	agent_says(fixture, 0,
		"'id':'q','method':'session/request_permission','params':{'sessionId':'s',"
		"'toolCall':{'kind':'edit'}%s%s}",
		options ? ",'options':" : "", options ? options : "");
}

static void assert_chosen(struct fixture *fixture, const char *options, const char *raw_id)
{
	ask_permission(fixture, options);
	agent_hears(fixture, 0,
		"'id':'q','result':{'outcome':{'outcome':'selected','optionId':%s}}", raw_id);
}

static void assert_cancelled(struct fixture *fixture, const char *options)
{
	ask_permission(fixture, options);
	agent_hears(fixture, 0, "'id':'q','result':{'outcome':{'outcome':'cancelled'}}");
}

static void test_an_option_is_chosen_by_its_kind_never_by_its_position(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = approve-all"));
	assert_chosen(fixture,
		"[{'optionId':'n','kind':'reject_once'},{'optionId':'y','kind':'allow_once'}]",
		"'y'");
	assert_chosen(fixture,
		"[{'optionId':'Y','kind':'allow_always'},{'optionId':'y','kind':'allow_once'}]",
		"'y'"); // the narrower
	assert_chosen(fixture,
		"[{'optionId':'n','kind':'reject_always'},{'optionId':'Y','kind':'allow_always'}]",
		"'Y'");
	assert_chosen(fixture, "[{'kind':'allow_once','name':'x','optionId':'\\u0079 /'}]",
		"'\\u0079 /'"); // as it was spelt
	assert_cancelled(fixture, "[{'optionId':'n','kind':'reject_once'}]");
	assert_cancelled(fixture, "[{'optionId':'y','kind':'allow'},{'optionId':'z'}]");
	assert_cancelled(fixture, "[{'optionId':7,'kind':'allow_once'},{'kind':'allow_once'}]");
	assert_cancelled(fixture, "[]");
	assert_cancelled(fixture, "{}");
	assert_cancelled(fixture, "'allow_once'");
	assert_cancelled(fixture, NULL);
	editor_hears_nothing(fixture);
}

static void test_a_no_is_said_with_an_option_that_rejects(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = deny-all"));
	assert_chosen(fixture,
		"[{'optionId':'y','kind':'allow_once'},{'optionId':'n','kind':'reject_once'}]",
		"'n'");
	assert_chosen(fixture,
		"[{'optionId':'y','kind':'allow_once'},{'optionId':'N','kind':'reject_always'}]",
		"'N'");
	assert_cancelled(fixture,
		"[{'optionId':'y','kind':'allow_once'},{'optionId':'Y','kind':'allow_always'}]");
	editor_hears_nothing(fixture);
}

static void test_where_policy_asks_its_question_goes_to_the_user(void **state)
{
	static const char question[] =
		"'method':'session/request_permission','params':{'sessionId':'s','toolCall':"
		"{'kind':'edit'},'options':[{'optionId':'y','kind':'allow_once'}]}";
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = pass"));
	agent_says(fixture, 0, "'id':'q',%s", question);
	editor_hears(fixture, "'id':0,%s", question);
	editor_says(fixture, "'id':0,'result':{'outcome':{'outcome':'selected','optionId':'?'}}");
	agent_hears(fixture, 0,
		"'id':'q','result':{'outcome':{'outcome':'selected','optionId':'?'}}"); // as it is
}

/* ---- the broker's questions ---- */

static void test_of_a_session_that_is_not_known_nothing_can_be_remembered(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("ask = read /w/secret"));
	agent_says(fixture, 0,
		"'id':'r','method':'fs/read_text_file','params':{'sessionId':'?',"
		"'path':'/w/secret'}");
	editor_hears(fixture,
		"'id':0,'method':'session/request_permission','params':{'sessionId':'?',"
		"'toolCall':{'toolCallId':'acp-broker-0','title':'acp-broker asks by your rule "
		"`ask = read /w/secret`: Read `/w/secret`','kind':'read',"
		"'status':'pending','locations':[{'path':'/w/secret'}]},'options':" OPTIONS_ONCE
		"}");
	editor_says(
		fixture, "'id':0,'result':{'outcome':{'outcome':'selected','optionId':'allow'}}");
	editor_hears(fixture, "'id':1,'method':'fs/read_text_file','params':{'sessionId':'?',"
			      "'path':'/w/secret'}");
}

/* Asks about a write; the editor hears question `id`, and answers it. */
static void ask_write(struct fixture *fixture, int id, const char *answer)
{
	agent_says(fixture, 0, "'id':'w'," WRITE_REQUEST);
	char *line = editor_line(fixture);
	char begin_text[64];
	snprintf(begin_text, sizeof(begin_text),
		"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"session/request_permission\"", id);
	assert_int_equal(strncmp(line, begin_text, strlen(begin_text)), 0);
	free(line);
	editor_says(fixture, "'id':%d,%s", id, answer);
}

static void hear_end_of(struct fixture *fixture, int id, const char *what, const char *status)
{
	editor_hears(fixture,
		"'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':"
		"'tool_call_update','toolCallId':'acp-broker-%d','title':'acp-broker asks because "
		"of "
		"`mode = ask-all`: %s','status':'%s'}}",
		id, what, status);
}

static void hear_closed(struct fixture *fixture, int id, const char *status)
{
	hear_end_of(fixture, id, "Write `/w/f`", status);
}

#define SELECTED(id) "'result':{'outcome':{'outcome':'selected','optionId':" id "}}"

/* Updates of an agent about the broker's tool calls, with the id in several spellings. */
static void test_an_agent_says_nothing_of_the_brokers_tool_calls(void **state)
{
	static const char *const ids[] = {"acp-broker-0", "acp-broker-", "acp-broker-notice-1",
		"\\u0061cp-broker-0",
		("\\u0061\\u0063\\u0070\\u002d\\u0062\\u0072\\u006f\\u006b"
		 "\\u0065\\u0072\\u002d7")};
	static const char *const kinds[] = {"tool_call", "tool_call_update"};
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	for (size_t i = 0; i < ARRAY_LENGTH(ids) * ARRAY_LENGTH(kinds); i++) {
		agent_says(fixture, 0,
			"'method':'session/update','params':{'sessionId':'s','update':{"
			"'sessionUpdate':'%s','toolCallId':'mine','title':'t',"
			"'%s':'%s'}}",
			kinds[i % 2], i % 3 ? "toolCallId" : "ToolCallID", ids[i / 2]);
		agent_says(fixture, 0,
			"'id':'q','method':'session/request_permission','params':{'sessionId':'s',"
			"'toolCall':{'toolCallId':'%s'},'options':[]}",
			ids[i / 2]);
		agent_hears_failure(fixture, 0, "\"q\"", "INVALID_PARAMS", "relay", "toolCallId");
		agent_says(fixture, 0,
			"'id':'e','method':'elicitation/create','params':{'sessionId':'s',"
			"'toolCallId':'%s','mode':'form'}",
			ids[i / 2]);
		agent_hears_failure(fixture, 0, "\"e\"", "INVALID_PARAMS", "relay", "toolCallId");
	}
	editor_hears_nothing(fixture);
	static const char *const others[] = {"acp-broke", "acp-brokers", "x acp-broker-0", "\\n"};
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		agent_says(fixture, 0,
			"'method':'session/update','params':{'sessionId':'s','update':{"
			"'sessionUpdate':'tool_call','toolCallId':'%s'}}",
			others[i]);
		editor_hears(fixture,
			"'method':'session/update','params':{'sessionId':'s','update':{"
			"'sessionUpdate':'tool_call','toolCallId':'%s'}}",
			others[i]);
	}
}

/* The agent may itself be a broker. */
static void test_where_nothing_is_asked_nothing_is_dropped(void **state)
{
	static const char update[] =
		"'method':'session/update','params':{'sessionId':'s','update':{"
		"'sessionUpdate':'tool_call','toolCallId':'acp-broker-0'}}";
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	agent_says(fixture, 0, update);
	editor_hears(fixture, update);
}

static void test_a_question_has_an_id_that_nobody_can_guess(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	for (int i = 0; i < 3; i++) {
		agent_says(fixture, 0, "'id':%d," WRITE_REQUEST, i);
		free(editor_line(fixture));
	}
	assert_int_equal(fixture->tool_call_count, 3); // each with random digits of its own
}

static void test_a_yes_sends_the_request_on_its_way(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	ask_write(fixture, 0, SELECTED("'allow'"));
	hear_closed(fixture, 0, "completed");
	editor_hears(fixture, "'id':1," WRITE_REQUEST);
	editor_says(fixture, "'id':1,'result':null");
	agent_hears(fixture, 0, "'id':'w','result':null");
	ask_write(fixture, 2, SELECTED("'allow'")); // asked again
}

/* The agent itself asks about a command in the session s; `number` is in the request's id. */
static void ask_own(struct fixture *fixture, int number)
{
	agent_says(fixture, 0,
		"'id':'q%d','method':'session/request_permission','params':{'sessionId':'s',"
		"'toolCall':{'toolCallId':'c','title':'`true`','rawInput':{'command':'true'}},"
		"'options':[{'optionId':'y','name':'Y','kind':'allow_once'}]}",
		number);
	free(editor_line(fixture));
}

static void run_true(struct fixture *fixture, const char *heard_method)
{
	agent_says(fixture, 0,
		"'id':'r','method':'terminal/create','params':{'sessionId':'s','command':'true'}");
	char *line = editor_line(fixture);
	assert_non_null(line);
	if (!strstr(line, heard_method)) {
		fail_msg("heard %s", line);
	}
	free(line);
}

static void begin_prompt(struct fixture *fixture)
{
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	editor_says(fixture, "'id':9,'method':'session/prompt','params':{'sessionId':'s',"
			     "'prompt':[]}");
	free(agent_next_line(fixture, 0));
}

static void say_yes(struct fixture *fixture, int number)
{
	editor_says(fixture, "'id':%d,'result':{'outcome':{'outcome':'selected','optionId':'y'}}",
		number);
	free(agent_next_line(fixture, 0));
}

static void test_what_the_agents_own_question_shows_is_not_asked_again(void **state)
{
	struct fixture *fixture = *state;
	begin_prompt(fixture);
	ask_own(fixture, 0);
	agent_says(fixture, 0,
		"'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':"
		"'tool_call_update','toolCallId':'d','title':'Run ls'}}");
	free(editor_line(fixture));
	say_yes(fixture, 0);
	run_true(fixture, "terminal/create");
}

static void test_what_was_shown_otherwise_meanwhile_is_asked_again(void **state)
{
	struct fixture *fixture = *state;
	begin_prompt(fixture);
	ask_own(fixture, 0);
	agent_says(fixture, 0,
		"'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':"
		"'tool_call_update','toolC\\u0061llId':'\\u0063','title':'Run ls'}}");
	free(editor_line(fixture));
	say_yes(fixture, 0);
	run_true(fixture, "session/request_permission");
}

static void test_a_second_question_shows_the_first_ones_call_otherwise(void **state)
{
	struct fixture *fixture = *state;
	begin_prompt(fixture);
	ask_own(fixture, 0);
	agent_says(fixture, 0,
		"'id':'z','method':'session/request_permission','params':{'sessionId':'s',"
		"'toolCall':{'toolCallId':'c','title':'Run ls'},'options':[]}");
	free(editor_line(fixture));
	say_yes(fixture, 0);
	run_true(fixture, "session/request_permission");
}

static void test_everything_but_a_yes_is_a_no(void **state)
{
	static const struct {
		const char *answer;
		const char *words;
	} cases[] = {
		{SELECTED("'reject'"), "fs/write_text_file: refused | user said no"},
		{"'result':{'outcome':{'outcome':'cancelled'}}", "the question was cancelled"},
		{SELECTED("'yes'"), "no option | offered"},
		{SELECTED("'Allow'"), "no option | offered"},
		{SELECTED("0"), "no outcome | ACP"},
		{SELECTED("null"), "no outcome | ACP"},
		{"'result':{'outcome':{'outcome':'allowed','optionId':'allow'}}",
			"no outcome | ACP"},
		{"'result':{'outcome':'selected','optionId':'allow'}", "no outcome"},
		{"'result':{'outcome':{'optionId':'allow'}}", "no outcome"},
		{"'result':{}", "no outcome"},
		{"'result':null", "no outcome"},
		{"'result':[]", "no outcome"},
		{"'result':'allow'", "no outcome"},
		{"'error':{'code':-32601,'message':'what?'}", "editor | ask the person | what?"},
		{"'error':{}", "ask the person | no reason"},
	};
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	for (int i = 0; i < (int)ARRAY_LENGTH(cases); i++) {
		ask_write(fixture, i, cases[i].answer);
		hear_closed(fixture, i, "failed");
		agent_hears_failure(
			fixture, 0, "\"w\"", "PERMISSION_DENIED", "session", cases[i].words);
	}
	editor_hears_nothing(fixture);
}

static void test_always_is_remembered_for_the_session(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	ask_write(fixture, 0, SELECTED("'allow-always'"));
	hear_closed(fixture, 0, "completed");
	editor_hears(fixture, "'id':1," WRITE_REQUEST);
	agent_says(fixture, 0, "'id':'again'," WRITE_REQUEST);
	editor_hears(fixture, "'id':2," WRITE_REQUEST);
	agent_says(fixture, 0,
		"'id':'other','method':'terminal/create','params':"
		"{'sessionId':'s','command':'ls'}");
	char *line = editor_line(fixture);
	assert_non_null(strstr(line, "\"id\":3,\"method\":\"session/request_permission\""));
	free(line);
	editor_says(fixture, "'id':3,%s", SELECTED("'reject-always'"));
	hear_end_of(fixture, 3, "Run `ls`", "failed");
	agent_hears_failure(
		fixture, 0, "\"other\"", "PERMISSION_DENIED", "session", "for the whole session");
	agent_says(fixture, 0,
		"'id':'again','method':'terminal/create','params':"
		"{'sessionId':'s','command':'ls'}");
	agent_hears_failure(fixture, 0, "\"again\"", "PERMISSION_DENIED", "session",
		"remembered: always reject");
	editor_hears_nothing(fixture);
}

/* ---- a question that is not answered ---- */

static void test_an_answer_that_cannot_be_read_is_a_no(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	agent_says(fixture, 0, "'id':'w'," WRITE_REQUEST);
	free(editor_line(fixture));
	editor_writes(fixture, SPAN_LITERAL("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{]\n"));
	hear_closed(fixture, 0, "failed");
	agent_hears_failure(fixture, 0, "\"w\"", "PARSE_ERROR", "session", "not understood");
}

static void test_nobody_answers_in_time(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->permission_timeout_ms = 40;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	agent_says(fixture, 0, "'id':'w'," WRITE_REQUEST);
	free(editor_line(fixture));
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
	hear_closed(fixture, 0, "failed");
	agent_hears_failure(fixture, 0, "\"w\"", "TIMEOUT_EXCEEDED", "session", "40 ms");
	editor_says(fixture, "'id':0,%s", SELECTED("'allow'")); // too late
	editor_hears_nothing(fixture);
}

static void test_the_agent_dies_meanwhile(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	agent_says(fixture, 0, "'id':'w'," WRITE_REQUEST);
	free(editor_line(fixture));
	agent_dies(fixture, 0);
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
	hear_closed(fixture, 0, "failed");
	editor_says(fixture, "'id':0,%s", SELECTED("'allow'"));
	stage_settle(&fixture->stage);
	editor_says(fixture, "'id':'n','method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_hears_nothing(fixture, 1);
}

static void test_the_editor_goes_meanwhile(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	agent_says(fixture, 0, "'id':'w'," WRITE_REQUEST);
	free(editor_line(fixture));
	editor_closes(fixture);
	agent_hears_failure(fixture, 0, "\"w\"", "EDITOR_GONE", "session", "closed the session");
	agent_hears_end(fixture, 0);
}

static void test_the_session_is_cancelled_meanwhile(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	agent_says(fixture, 0, "'id':'w'," WRITE_REQUEST);
	free(editor_line(fixture));
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears_failure(fixture, 0, "\"w\"", "PERMISSION_DENIED", "session", "cancelled");
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
	hear_closed(fixture, 0, "failed");
}

static void test_the_agent_takes_its_request_back_meanwhile(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all"));
	agent_says(fixture, 0, "'id':'w'," WRITE_REQUEST);
	free(editor_line(fixture));
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{'requestId':'w'}");
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
	editor_says(fixture, "'id':0,'error':{'code':-32800,'message':'cancelled'}");
	hear_closed(fixture, 0, "failed");
	agent_hears_failure(fixture, 0, "\"w\"", "PERMISSION_DENIED", "session", "cancelled");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_what_is_allowed_passes_and_what_is_denied_is_refused),
		RELAY_TEST(test_without_a_policy_all_that_cannot_be_judged_passes),
		RELAY_TEST(test_what_cannot_be_judged_passes_where_nothing_hangs_on_it),
		RELAY_TEST(test_what_cannot_be_judged_is_guarded),
		RELAY_TEST(test_what_cannot_be_judged_cannot_be_asked_about),
		RELAY_TEST(test_an_option_is_chosen_by_its_kind_never_by_its_position),
		RELAY_TEST(test_a_no_is_said_with_an_option_that_rejects),
		RELAY_TEST(test_where_policy_asks_its_question_goes_to_the_user),
		RELAY_TEST(test_of_a_session_that_is_not_known_nothing_can_be_remembered),
		RELAY_TEST(test_an_agent_says_nothing_of_the_brokers_tool_calls),
		RELAY_TEST(test_where_nothing_is_asked_nothing_is_dropped),
		RELAY_TEST(test_a_question_has_an_id_that_nobody_can_guess),
		RELAY_TEST(test_a_yes_sends_the_request_on_its_way),
		RELAY_TEST(test_what_the_agents_own_question_shows_is_not_asked_again),
		RELAY_TEST(test_what_was_shown_otherwise_meanwhile_is_asked_again),
		RELAY_TEST(test_a_second_question_shows_the_first_ones_call_otherwise),
		RELAY_TEST(test_everything_but_a_yes_is_a_no),
		RELAY_TEST(test_always_is_remembered_for_the_session),
		RELAY_TEST(test_an_answer_that_cannot_be_read_is_a_no),
		RELAY_TEST(test_nobody_answers_in_time),
		RELAY_TEST(test_the_agent_dies_meanwhile),
		RELAY_TEST(test_the_editor_goes_meanwhile),
		RELAY_TEST(test_the_session_is_cancelled_meanwhile),
		RELAY_TEST(test_the_agent_takes_its_request_back_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
