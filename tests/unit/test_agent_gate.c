/* SPDX-License-Identifier: MIT */
#include "tests/unit/grant_fixture.h"

/*
 * Requests of an agent that are refused whatever they are about, and those that pass without a
 * policy.
 */

#define TWICE                                                                                      \
	"'method':'terminal/create','params':{'sessionId':'s','command':'git','args':['status'],"  \
	"'env':[{'name':'LANG','value':'/w/e.so','name':'LD_PRELOAD'}]}"

static void assert_refused(struct fixture *fixture, const char *message, const char *code,
	const char *stage, const char *words)
{
	agent_says(fixture, 0, "'id':7,%s", message);
	agent_hears_failure(fixture, 0, "7", code, stage, words);
	editor_hears_nothing(fixture);
}

static void assert_passes(struct fixture *fixture, int number, const char *message)
{
	agent_says(fixture, 0, "'id':7,%s", message);
	editor_hears(fixture, "'id':%d,%s", number, message);
}

/* ---- members that readers may read otherwise ---- */

static void test_a_member_that_stands_twice_is_refused_where_a_policy_decides(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = deny-all", "allow = terminal git status"));
	assert_refused(fixture, TWICE, "INVALID_PARAMS", "session", "name");
	assert_refused(fixture,
		"'method':'terminal/create','params':{'sessionId':'s','command':'git','args':["
		"'status'],'env':[{'n\\u0061me':'LD_PRELOAD','name':'LANG','value':'x'}]}",
		"INVALID_PARAMS", "session", "name");
	assert_refused(fixture,
		"'method':'terminal/create','params':{'sessionId':'s','command':'git','args':["
		"'status'],'Args':['push']}",
		"INVALID_PARAMS", "session", "Args");
	assert_refused(fixture,
		"'method':'fs/read_text_file','params':{'sessionId':'s','path':'/w/a','PATH':'/b'}",
		"INVALID_PARAMS", "session", "PATH");
	assert_refused(fixture,
		"'method':'session/request_permission','params':{'sessionId':'s','options':[],"
		"'toolCall':{'toolCallId':'t','kind':'read','Kind':'execute'}}",
		"INVALID_PARAMS", "session", "Kind");
	assert_refused(fixture,
		"'method':'session/request_permission','params':{'sessionId':'s','options':[{"
		"'optionId':'a','kind':'allow_once','optionId':'b'}],'toolCall':{'toolCallId':'t'}"
		"}",
		"INVALID_PARAMS", "session", "optionId");
}

static void test_what_is_free_in_acp_stays_free(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = pass"));
	assert_passes(fixture, 0,
		"'method':'session/request_permission','params':{'sessionId':'s','options':[],"
		"'_meta':{'a':1,'a':2,'PATH':3},'toolCall':{'toolCallId':'t','rawInput':{'Path':1,"
		"'path':2,'x':1,'x':2},'rawOutput':[{'x':1,'x':2}],'content':[{'path':1,'path':2}],"
		"'vendor':1,'Vendor':2}}");
	assert_passes(fixture, 1, "'method':'_vendor/x','params':{'a':1,'a':2,'PATH':3,'path':4}");
}

static void test_the_toolhost_takes_no_such_params_either(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->toolhost = TOOLHOST_BROKER;
	begin(fixture);
	editor_says(fixture, "'id':0,'method':'initialize','params':{'protocolVersion':1}");
	agent_hears(fixture, 0,
		"'id':0,'method':'initialize','params':{'clientCapabilities':{'fs':{"
		"'readTextFile':true,'writeTextFile':true},'terminal':true},'protocolVersion':1}");
	agent_says(fixture, 0, "'id':0,%s", initialize_result);
	free(editor_line(fixture));
	editor_says(fixture, "'id':1,'method':'session/new','params':{'cwd':'/w'}");
	agent_hears(fixture, 0, "'id':1,'method':'session/new','params':{'cwd':'/w'}");
	agent_says(fixture, 0, "'id':1,'result':{'sessionId':'s'}");
	editor_hears(fixture, "'id':1,'result':{'sessionId':'s'}");
	assert_refused(fixture, TWICE, "INVALID_PARAMS", "session", "name");
	assert_refused(fixture,
		"'method':'terminal/"
		"output','params':{'sessionId':'s','terminalId':'1','terminalid':"
		"'2'}",
		"INVALID_PARAMS", "session", "terminalid");
}

static void test_an_envelope_that_readers_may_read_otherwise_is_no_message(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = pass"));
	assert_refused(fixture, "'method':'_vendor/x','METHOD':'terminal/create'",
		"INVALID_MESSAGE", "relay", "METHOD");
	assert_refused(fixture, "'method':'_vendor/x','params':{},'Params':{}", "INVALID_MESSAGE",
		"relay", "Params");
	agent_says(fixture, 0, "'method':'session/update','params':{},'ID':1");
	editor_hears_nothing(fixture);
}

static void test_without_a_policy_it_is_the_editor_that_judges(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	assert_passes(fixture, 0, TWICE);
	assert_passes(fixture, 1, "'method':'_vendor/x','METHOD':'terminal/create'");
	assert_passes(fixture, 2,
		"'method':'fs/read_text_file','params':{'sessionId':'s','path':'/w/a','PATH':'/"
		"b'}");
	assert_passes(fixture, 3, "'method':'session/new','params':{'cwd':'/'}");
}

/* ---- requests without an id ---- */

static const char *const requests[] = {
	"'method':'fs/read_text_file','params':{'sessionId':'s','path':'/w/f'}",
	"'method':'fs/write_text_file','params':{'sessionId':'s','path':'/w/f','content':'x'}",
	"'method':'terminal/create','params':{'sessionId':'s','command':'ls'}",
	"'method':'terminal/output','params':{'sessionId':'s','terminalId':'t'}",
	"'method':'terminal/wait_for_exit','params':{'sessionId':'s','terminalId':'t'}",
	"'method':'terminal/kill','params':{'sessionId':'s','terminalId':'t'}",
	"'method':'terminal/release','params':{'sessionId':'s','terminalId':'t'}",
	("'method':'session/request_permission','params':{'sessionId':'s','options':[],"
	 "'toolCall':{'toolCallId':'t'}}"),
	"'method':'elicitation/create','params':{'sessionId':'s','message':'m'}",
	"'method':'fs/later','params':{'sessionId':'s'}",
	"'method':'terminal/later'",
};

/* The editor hears none of these, but all notifications that ACP has. */
static void assert_requests_need_an_id(struct fixture *fixture)
{
	static const char *const notifications[] = {
		"'method':'session/update','params':{'sessionId':'s'}",
		"'method':'elicitation/complete','params':{'elicitationId':'e'}",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(requests); i++) {
		agent_says(fixture, 0, "%s", requests[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(notifications); i++) {
		agent_says(fixture, 0, "%s", notifications[i]);
		editor_hears(fixture, "%s", notifications[i]);
	}
	editor_hears_nothing(fixture);
	agent_hears_nothing(fixture, 0);
}

static void test_no_request_without_an_id_gets_round_a_policy(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = deny-all"));
	assert_requests_need_an_id(fixture);
}

static void test_nor_round_one_that_allows_everything(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = approve-all", "allow = *"));
	assert_requests_need_an_id(fixture);
	agent_says(fixture, 0, "'method':'_vendor/told'");
	editor_hears(fixture, "'method':'_vendor/told'");
}

static void begin_elsewhere(struct fixture *fixture)
{
	fixture->stage.capabilities.maps_paths = true;
	begin(fixture);
	editor_says(fixture, "'id':0,%s", initialize_request);
	free(agent_next_line(fixture, 0));
	agent_says(fixture, 0, "'id':0,%s", initialize_result);
	free(editor_line(fixture));
}

static void test_nor_round_the_brokers_own_files(void **state)
{
	struct fixture *fixture = *state;
	begin_elsewhere(fixture);
	assert_requests_need_an_id(fixture);
}

static void test_nor_round_the_bounds_of_what_the_editor_serves(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->toolhost = TOOLHOST_EDITOR;
	begin_elsewhere(fixture);
	assert_requests_need_an_id(fixture);
}

static void test_without_a_policy_they_are_the_editors(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(requests); i++) {
		agent_says(fixture, 0, "%s", requests[i]);
		editor_hears(fixture, "%s", requests[i]);
	}
}

/* ---- methods that ACP does not know ---- */

static void assert_unknown_is_refused(struct fixture *fixture, const char *rule)
{
	assert_refused(fixture, "'method':'_vendor/x','params':{'sessionId':'s'}",
		"PERMISSION_DENIED", "session", rule);
	assert_refused(fixture, "'method':'session/new','params':{'cwd':'/'}", "PERMISSION_DENIED",
		"session", rule);
	assert_refused(fixture, "'method':'mcp/message'", "PERMISSION_DENIED", "session", rule);
	agent_says(fixture, 0, "'method':'_vendor/told','params':{}");
	agent_says(fixture, 0, "'method':'session/update','params':{'sessionId':'s'}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s'}");
	assert_passes(fixture, 0,
		"'method':'elicitation/create','params':{'sessionId':'s','message':'m'}");
}

static void test_deny_all_denies_what_it_does_not_know(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = deny-all", "allow = *"));
	assert_unknown_is_refused(fixture, "mode = deny-all");
}

static void test_a_rule_that_denies_everything_denies_it_too(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = approve-all", "deny = *"));
	assert_unknown_is_refused(fixture, "deny = *");
}

static void test_other_policies_leave_it_to_the_editor(void **state)
{
	struct fixture *fixture = *state;
	begin_with_policy(fixture, POLICY("mode = ask-all", "deny = read", "deny = grant"));
	assert_passes(fixture, 0, "'method':'_vendor/x','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'method':'_vendor/told'");
	editor_hears(fixture, "'method':'_vendor/told'");
}

static void test_the_brokers_own_methods_are_not_the_agents_to_use(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	assert_refused(fixture, "'method':'_broker/health','params':{}", "METHOD_NOT_FOUND",
		"relay", "_broker/health");
	assert_refused(fixture, "'method':'_broker/nothing'", "METHOD_NOT_FOUND", "relay",
		"for the editor alone");
	agent_says(fixture, 0, "'method':'_broker/session/state','params':{}");
	editor_hears_nothing(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_a_member_that_stands_twice_is_refused_where_a_policy_decides),
		RELAY_TEST(test_what_is_free_in_acp_stays_free),
		RELAY_TEST(test_the_toolhost_takes_no_such_params_either),
		RELAY_TEST(test_an_envelope_that_readers_may_read_otherwise_is_no_message),
		RELAY_TEST(test_without_a_policy_it_is_the_editor_that_judges),
		RELAY_TEST(test_no_request_without_an_id_gets_round_a_policy),
		RELAY_TEST(test_nor_round_one_that_allows_everything),
		RELAY_TEST(test_nor_round_the_brokers_own_files),
		RELAY_TEST(test_nor_round_the_bounds_of_what_the_editor_serves),
		RELAY_TEST(test_without_a_policy_they_are_the_editors),
		RELAY_TEST(test_deny_all_denies_what_it_does_not_know),
		RELAY_TEST(test_a_rule_that_denies_everything_denies_it_too),
		RELAY_TEST(test_other_policies_leave_it_to_the_editor),
		RELAY_TEST(test_the_brokers_own_methods_are_not_the_agents_to_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
