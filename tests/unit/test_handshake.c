/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"

#include <stdio.h>

#include "broker/methods/own_methods.h"

/* initialize and authenticate: the edits, and what a further agent is told again. */

/* The value of _meta.broker, with ' for ". */
static const char *broker_meta(void)
{
	static char text[1024];
	int len = snprintf(text, sizeof(text),
		"{'version':'%s','backend':'local','capabilities':{'isolated':false,'separate_"
		"files':false,'confined':false,'methods':[",
		ACP_BROKER_VERSION);
	for (size_t i = 0; own_method_name(i); i++) {
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s'%s'", i > 0 ? "," : "",
			own_method_name(i));
	}
	snprintf(text + len, sizeof(text) - (size_t)len,
		"],'notifications':['_broker/session/state']},'warnings':[]}");
	return text;
}

/*
 * The editor sends initialize, and the agent answers with a result; the editor must hear `heard`.
 */
static void assert_result(const char *said, const char *heard)
{
	void *state = NULL;
	set_up(&state);
	struct fixture *fixture = state;
	begin(fixture);
	editor_says(fixture, "'id':'i',%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	agent_says(fixture, 0, "'id':0,'result':%s", said);
	char expected[4096];
	const char *at = strstr(heard, "BROKER");
	assert_non_null(at);
	snprintf(expected, sizeof(expected), "%.*s%s%s", (int)(at - heard), heard, broker_meta(),
		at + strlen("BROKER"));
	editor_hears(fixture, "'id':'i','result':%s", expected);
	tear_down(&state);
}

/* ---- _meta.broker ---- */

static void test_the_broker_adds_itself_to_every_form_of_meta(void **state)
{
	assert_result("{'protocolVersion':1}", "{'_meta':{'broker':BROKER},'protocolVersion':1}");
	assert_result("{'protocolVersion':1,'_meta':null,'z':1}",
		"{'protocolVersion':1,'_meta':{'broker':BROKER},'z':1}");
	assert_result("{'_meta':{},'protocolVersion':1}",
		"{'_meta':{'broker':BROKER},'protocolVersion':1}");
	assert_result("{'_meta': { },'protocolVersion':1}",
		"{'_meta': {'broker':BROKER },'protocolVersion':1}");
	assert_result("{'_meta':{ 'a':1},'protocolVersion':1}",
		"{'_meta':{'broker':BROKER, 'a':1},'protocolVersion':1}");
	assert_result("{'_meta':'odd','protocolVersion':1}",
		"{'_meta':{'broker':BROKER},'protocolVersion':1}");
	assert_result("{'_meta':[{}],'protocolVersion':1}",
		"{'_meta':{'broker':BROKER},'protocolVersion':1}");
}

static void test_a_broker_behind_this_one_is_replaced(void **state)
{
	assert_result("{'_meta':{'a':1,'broker':{'version':'9'},'b':2},'protocolVersion':1}",
		"{'_meta':{'a':1,'broker':BROKER,'b':2},'protocolVersion':1}");
	assert_result("{'_meta':{'broker':null},'protocolVersion':1}",
		"{'_meta':{'broker':BROKER},'protocolVersion':1}");
}

/* ---- the version ---- */

static void assert_version(const char *said, const char *heard)
{
	void *state = NULL;
	set_up(&state);
	struct fixture *fixture = state;
	begin(fixture);
	editor_says(fixture, "'id':'i','method':'initialize','params':{%s'a':1}", said);
	agent_hears(fixture, 0, "'id':0,'method':'initialize','params':{%s'a':1}", heard);
	tear_down(&state);
}

static void test_the_version_is_pinned_to_1_toward_the_agent(void **state)
{
	assert_version("'protocolVersion':1,", "'protocolVersion':1,");
	assert_version("'protocolVersion':2,", "'protocolVersion':1,");
	assert_version("'protocolVersion': 65535 ,", "'protocolVersion': 1 ,");
	assert_version("'protocolVersion':0,", "'protocolVersion':1,");
	assert_version("'protocolVersion':1.0,", "'protocolVersion':1,");
	assert_version("", ""); // the agent says what it misses
	assert_version("'protocolVersion':'2',", "'protocolVersion':'2',");
	assert_version("'protocolVersion':null,", "'protocolVersion':null,");
}

static void test_an_agent_of_another_version_is_refused(void **state)
{
	static const char *const results[] = {"{'protocolVersion':2}", "{'protocolVersion':'1'}",
		"{'protocolVersion':1.0}", "{}", "null", "[1]", "'x'"};
	for (size_t i = 0; i < ARRAY_LENGTH(results); i++) {
		void *other = NULL;
		set_up(&other);
		struct fixture *fixture = other;
		begin(fixture);
		editor_says(fixture, "'id':'i',%s", initialize_request);
		agent_hears(fixture, 0, "'id':0,%s", initialize_request);
		agent_says(fixture, 0, "'id':0,'result':%s", results[i]);
		editor_hears_failure(
			fixture, "\"i\"", "PROTOCOL_UNSUPPORTED", "relay", "initialize");
		tear_down(&other);
	}
}

static void test_an_error_passes_and_initialize_can_be_tried_again(void **state)
{
	struct fixture *fixture = *state;
	begin(fixture);
	editor_says(fixture, "'id':1,%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	agent_says(fixture, 0, "'id':0,'error':{'code':-1,'message':'busy'}");
	editor_hears(fixture, "'id':1,'error':{'code':-1,'message':'busy'}");
	editor_says(fixture, "'id':2,%s", initialize_request);
	agent_hears(fixture, 0, "'id':1,%s", initialize_request);
}

static void test_an_initialize_that_is_not_answered_has_a_deadline(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->start_timeout_ms = 300;
	begin(fixture);
	editor_says(fixture, "'id':1,%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	editor_hears_failure(fixture, "1", "TIMEOUT_EXCEEDED", "initialize", "300 ms");
	stage_settle(&fixture->stage);
	editor_says(fixture, "'id':2,%s", initialize_request); // the other agent has done so
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
}

static void test_an_initialize_that_cannot_be_kept_is_refused(void **state)
{
	enum { HUGE = 1024 * 1024 };
	struct fixture *fixture = *state;
	char *text = mem_alloc_zero(HUGE + 1);
	memset(text, 'x', HUGE);
	begin(fixture);
	editor_says(fixture, "'id':1,'method':'initialize','params':{'t':'%s'}", text);
	editor_hears_failure(
		fixture, "1", "RESOURCE_LIMIT_EXCEEDED", "relay", "initialize: more than");
	agent_hears_nothing(fixture, 0);
	free(text);
}

/* ---- what the agent is told it may ask for ---- */

static void assert_capabilities(const char *said, const char *heard)
{
	void *state = NULL;
	set_up(&state);
	struct fixture *fixture = state;
	profile_of(fixture)->toolhost = TOOLHOST_BROKER;
	begin(fixture);
	editor_says(fixture, "'id':0,'method':'initialize','params':{'protocolVersion':1%s}", said);
	agent_hears(fixture, 0, "'id':0,'method':'initialize','params':{%s}", heard);
	tear_down(&state);
}

static void test_the_toolhosts_capabilities_take_the_editors_place(void **state)
{
	assert_capabilities(",'clientCapabilities':{}",
		"'protocolVersion':1,'clientCapabilities':{'fs':{'readTextFile':true,"
		"'writeTextFile':true},'terminal':true}");
	assert_capabilities("", "'clientCapabilities':{'fs':{'readTextFile':true,"
				"'writeTextFile':true},'terminal':true},'protocolVersion':1");
	assert_capabilities(",'clientCapabilities':null",
		"'protocolVersion':1,'clientCapabilities':{'fs':{'readTextFile':true,"
		"'writeTextFile':true},'terminal':true}");
	assert_capabilities(",'clientCapabilities':{'terminal':false,'fs':{},'_meta':{}}",
		"'protocolVersion':1,'clientCapabilities':{'terminal':true,'fs':{"
		"'readTextFile':true,'writeTextFile':true},'_meta':{}}");
	assert_capabilities(",'clientCapabilities':{'terminal':false}",
		"'protocolVersion':1,'clientCapabilities':{'fs':{'readTextFile':true,"
		"'writeTextFile':true},'terminal':true}");
}

/* ---- an agent that is started anew ---- */

static void authenticate(struct fixture *fixture, int agent_id, const char *method, bool works)
{
	editor_says(fixture, "'id':'a','method':'authenticate','params':{'methodId':'%s'}", method);
	agent_hears(fixture, 0, "'id':%d,'method':'authenticate','params':{'methodId':'%s'}",
		agent_id, method);
	const char *answer = works ? "'result':{}" : "'error':{'code':1,'message':'no'}";
	agent_says(fixture, 0, "'id':%d,%s", agent_id, answer);
	editor_hears(fixture, "'id':'a',%s", answer);
}

static void test_a_new_agent_is_told_what_the_first_one_was(void **state)
{
	struct fixture *fixture = *state;
	begin(fixture);
	editor_says(fixture, "'id':'i','method':'initialize','params':{'protocolVersion':7}");
	agent_hears(fixture, 0, "'id':0,'method':'initialize','params':{'protocolVersion':1}");
	agent_says(fixture, 0, "'id':0,'result':{'protocolVersion':1,'_meta':{}}");
	free(editor_line(fixture));
	authenticate(fixture, 1, "one", true);
	authenticate(fixture, 2, "two", true);
	authenticate(fixture, 3, "three", false); // this one failed: the second is the last
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':7,'method':'session/new','params':{}");
	editor_says(fixture, "'id':8,'method':'_x'");
	agent_hears(fixture, 1, "'id':0,'method':'initialize','params':{'protocolVersion':1}");
	agent_hears_nothing(fixture, 1);
	agent_says(fixture, 1, "'id':0,'result':{'protocolVersion':1}");
	agent_hears(fixture, 1, "'id':3,'method':'authenticate','params':{'methodId':'two'}");
	agent_hears_nothing(fixture, 1);
	agent_says(fixture, 1, "'id':3,'result':{}");
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':2,'method':'_x'");
	agent_says(fixture, 1, "'id':1,'result':{'sessionId':'n'}");
	editor_hears(fixture, "'id':7,'result':{'sessionId':'n'}");
	editor_hears_nothing(fixture); // the broker keeps the answers to the requests it repeated
}

static void test_without_a_login_the_requests_follow_at_once(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	authenticate(fixture, 1, "one", false);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':7,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_says(fixture, 1, "'id':0,%s", initialize_result);
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{}");
}

static void test_an_editor_that_begins_again_is_not_talked_over(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':1,%s", initialize_request);
	editor_says(fixture, "'id':2,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{}");
	agent_hears_nothing(fixture, 1);
}

static void test_a_new_agent_that_refuses_initialize_is_given_up(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':7,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_says(fixture, 1, "'id':0,'error':{'code':-32000,'message':'licence'}");
	editor_hears_failure(fixture, "7", "AGENT_START_FAILED", "initialize",
		"agent 1 | restarting | initialize failed: {\\\"code\\\":-32000");
	stage_settle(&fixture->stage);
	editor_says(fixture, "'id':8,'method':'session/new','params':{}"); // tries once more
	agent_hears(fixture, 2, "'id':0,%s", initialize_request);
}

static void test_a_new_agent_of_another_version_is_given_up(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':7,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_says(fixture, 1, "'id':0,'result':{'protocolVersion':2,'agentCapabilities':{}}");
	editor_hears_failure(fixture, "7", "PROTOCOL_UNSUPPORTED", "initialize",
		"agent 1 | restarting | initialize failed | protocolVersion 2 | speaks 1");
}

static void test_a_new_agent_that_refuses_the_login_is_given_up(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	authenticate(fixture, 1, "one", true);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':7,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_says(fixture, 1, "'id':0,%s", initialize_result);
	agent_hears(fixture, 1, "'id':2,'method':'authenticate','params':{'methodId':'one'}");
	agent_says(fixture, 1, "'id':2,'error':{'code':1,'message':'expired'}");
	editor_hears_failure(fixture, "7", "AGENT_START_FAILED", "initialize",
		"authenticate failed: {\\\"code\\\":1,\\\"message\\\":\\\"expired\\\"}");
}

static void test_a_new_agent_that_never_answers_the_login_is_given_up(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	authenticate(fixture, 1, "one", true);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':7,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	profile_of(fixture)->start_timeout_ms = 20; // the answer to initialize came in time
	agent_says(fixture, 1, "'id':0,%s", initialize_result);
	agent_hears(fixture, 1, "'id':2,'method':'authenticate','params':{'methodId':'one'}");
	editor_hears_failure(fixture, "7", "TIMEOUT_EXCEEDED", "authenticate",
		"authenticate | 20 ms | start-timeout");
	editor_hears_nothing(fixture);
}

static void test_a_new_agent_that_has_answered_the_login_has_all_its_time(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	authenticate(fixture, 1, "one", true);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':7,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	profile_of(fixture)->start_timeout_ms = 2000;
	agent_says(fixture, 1, "'id':0,%s", initialize_result);
	agent_hears(fixture, 1, "'id':2,'method':'authenticate','params':{'methodId':'one'}");
	agent_says(fixture, 1, "'id':2,'result':{}");
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{}");
	wait_ms(fixture, 2200);
	editor_hears_nothing(fixture);
	agent_says(fixture, 1, "'id':1,'result':{}");
	editor_hears(fixture, "'id':7,'result':{}");
}

static void test_a_new_agent_that_dies_before_it_answers_is_told(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':7,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_dies(fixture, 1);
	editor_hears_failure(fixture, "7", "AGENT_EXITED", "initialize",
		"exited with status 1 before it answered initialize");
	editor_hears_nothing(fixture);
}

/* ---- version 2 ---- */

static void test_a_version_that_is_not_spoken_is_told_and_the_one_that_is(void **state)
{
	static const char *const params[] = {
		"'protocolVersion':2,'info':{'name':'e','version':'1'},'capabilities':{}",
		"'protocolVersion':2,'info':{'name':'e','version':'1'}",
		"'protocolVersion':2,'capabilities':{}",
	};
	struct fixture *fixture = *state;
	begin(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(params); i++) {
		editor_says(fixture, "'id':'i','method':'initialize','params':{%s}", params[i]);
		char *line = editor_line(fixture);
		assert_non_null(strstr(line, "\"id\":\"i\",\"error\":{\"code\":-32022,"));
		assert_non_null(strstr(line, "\"requested\":2,\"supported\":[1]}"));
		free(line);
	}
	assert_int_equal(fixture->stage.actor_count, 0);
	editor_says(fixture, "'id':0,%s", initialize_request); // it falls back
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
}

static void test_the_form_of_version_1_is_answered_whatever_its_number(void **state)
{
	struct fixture *fixture = *state;
	begin(fixture);
	editor_says(fixture, "'id':'i','method':'initialize','params':{'protocolVersion':2,"
			     "'clientCapabilities':{},'info':{'name':'e','version':'1'}}");
	agent_hears(fixture, 0,
		"'id':0,'method':'initialize','params':{'protocolVersion':1,"
		"'clientCapabilities':{},'info':{'name':'e','version':'1'}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_broker_adds_itself_to_every_form_of_meta),
		cmocka_unit_test(test_a_broker_behind_this_one_is_replaced),
		cmocka_unit_test(test_the_version_is_pinned_to_1_toward_the_agent),
		cmocka_unit_test(test_an_agent_of_another_version_is_refused),
		RELAY_TEST(test_an_error_passes_and_initialize_can_be_tried_again),
		RELAY_TEST(test_an_initialize_that_is_not_answered_has_a_deadline),
		RELAY_TEST(test_an_initialize_that_cannot_be_kept_is_refused),
		cmocka_unit_test(test_the_toolhosts_capabilities_take_the_editors_place),
		RELAY_TEST(test_a_new_agent_is_told_what_the_first_one_was),
		RELAY_TEST(test_without_a_login_the_requests_follow_at_once),
		RELAY_TEST(test_an_editor_that_begins_again_is_not_talked_over),
		RELAY_TEST(test_a_new_agent_that_refuses_initialize_is_given_up),
		RELAY_TEST(test_a_new_agent_of_another_version_is_given_up),
		RELAY_TEST(test_a_new_agent_that_refuses_the_login_is_given_up),
		RELAY_TEST(test_a_new_agent_that_never_answers_the_login_is_given_up),
		RELAY_TEST(test_a_new_agent_that_has_answered_the_login_has_all_its_time),
		RELAY_TEST(test_a_new_agent_that_dies_before_it_answers_is_told),
		RELAY_TEST(test_a_version_that_is_not_spoken_is_told_and_the_one_that_is),
		RELAY_TEST(test_the_form_of_version_1_is_answered_whatever_its_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
