/* SPDX-License-Identifier: MIT */
#include "broker/relay/restore.h"
#include "tests/support/facts.h"
#include "tests/unit/relay_fixture.h"
#include "tests/unit/stderr_capture.h"

/* Greets an agent that offers these capabilities; it has the session "s". */
static void begin_offering(struct fixture *fixture, const char *capabilities)
{
	begin(fixture);
	editor_says(fixture, "'id':0,%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	agent_says(fixture, 0, "'id':0,'result':{'protocolVersion':1,'agentCapabilities':{%s}}",
		capabilities);
	free(editor_line(fixture));
	editor_says(fixture, "'id':1,'method':'session/new','params':{'cwd':'/w','x':[1e2]}");
	agent_hears(fixture, 0, "'id':1,'method':'session/new','params':{'cwd':'/w','x':[1e2]}");
	agent_says(fixture, 0, "'id':1,'result':{'sessionId':'s'}");
	editor_hears(fixture, "'id':1,'result':{'sessionId':'s'}");
}

static void greet_again(struct fixture *fixture, int index)
{
	agent_hears(fixture, index, "'id':0,%s", initialize_request);
	agent_says(fixture, index, "'id':0,%s", initialize_result);
}

static const char prompt[] = "'method':'session/prompt','params':{'sessionId':'s'}";

static void test_what_is_asked_waits_for_a_resume(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'loadSession':true,'sessionCapabilities':{'resume':{}}");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	editor_says(fixture, "'id':3,'method':'_x','params':{'sessionId':'s'}");
	greet_again(fixture, 1);
	agent_hears(fixture, 1,
		"'id':1,'method':'session/resume','params':{'sessionId':'s','cwd':'/w','x':[1e2]}");
	agent_hears_nothing(fixture, 1);
	agent_says(fixture, 1, "'id':1,'result':{}");
	agent_hears(fixture, 1, "'id':2,%s", prompt);
	agent_hears(fixture, 1, "'id':3,'method':'_x','params':{'sessionId':'s'}");
	agent_says(fixture, 1, "'id':2,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'id':2,'result':{'stopReason':'end_turn'}");
	assert_int_equal(fixture->stage.prepared, 1);
}

static void test_a_replay_is_not_shown_but_how_it_is_now(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'loadSession':true,'sessionCapabilities':{'resume':null}");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	greet_again(fixture, 1);
	agent_hears(fixture, 1,
		"'id':1,'method':'session/load','params':{'sessionId':'s','cwd':'/w','x':[1e2]}");
	agent_says(fixture, 1,
		"'method':'session/update','params':{'sessionId':'s','update':"
		"{'sessionUpdate':'user_message_chunk'}}");
	agent_says(fixture, 1,
		"'method':'session/update','params':{'sessionId':'s','update':"
		"{'sessionUpdate':'available_commands_update'}}");
	agent_says(fixture, 1,
		"'id':1,'result':{'modes':{'currentModeId':'m'},'configOptions':[{'id':'o'}]}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','update':"
			      "{'sessionUpdate':'available_commands_update'}}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','update':"
			      "{'sessionUpdate':'current_mode_update','currentModeId':'m'}}");
	editor_hears(fixture,
		"'method':'session/update','params':{'sessionId':'s','update':"
		"{'sessionUpdate':'config_option_update','configOptions':[{'id':'o'}]}}");
	agent_hears(fixture, 1, "'id':2,%s", prompt);
	agent_says(fixture, 1,
		"'method':'session/update','params':{'sessionId':'s','update':"
		"{'sessionUpdate':'agent_message_chunk'}}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','update':"
			      "{'sessionUpdate':'agent_message_chunk'}}");
}

static void test_a_replay_that_goes_on_is_hidden_and_waited_for(void **state)
{
	struct fixture *fixture = *state;
	static const char chunk[] = "'method':'session/update','params':{'sessionId':'s','update':"
				    "{'sessionUpdate':'user_message_chunk'}}";
	begin_offering(fixture, "'loadSession':true");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	greet_again(fixture, 1);
	free(agent_next_line(fixture, 1));
	agent_says(fixture, 1, "'id':1,'result':{}");
	for (int i = 0; i < 4; i++) { // longer than it waits without any of them
		agent_says(fixture, 1, chunk);
		wait_ms(fixture, RESTORE_QUIET_MS / 2);
		agent_hears_nothing(fixture, 1);
	}
	agent_hears(fixture, 1, "'id':2,%s", prompt);
	editor_hears_nothing(fixture);
	agent_says(fixture, 1, chunk);
	editor_hears(fixture, chunk);
}

static void test_a_relay_that_is_destroyed_while_a_replay_goes_on(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'loadSession':true");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	greet_again(fixture, 1);
	free(agent_next_line(fixture, 1));
	agent_says(fixture, 1, "'id':1,'result':{}");
	agent_hears_nothing(fixture, 1);
	relay_destroy(fixture->relay);
	fixture->relay = NULL;
}

static void test_a_refusal_is_told_to_all_who_wait(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'loadSession':true");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	editor_says(fixture, "'id':3,'method':'_x','params':{'sessionId':'s'}");
	greet_again(fixture, 1);
	free(agent_next_line(fixture, 1));
	agent_says(fixture, 1,
		"'id':1,'error':{'code':-32002,'message':'who is that?','data':'the details'}");
	char *answer = editor_line(fixture);
	assert_non_null(strstr(answer, "\"detail\":\"the details\""));
	assert_non_null(strstr(answer, "who is that?"));
	assert_non_null(strstr(answer, "SESSION_LOST"));
	free(answer);
	editor_hears_failure(fixture, "3", "SESSION_LOST", "session", "/w");
}

static void test_a_lost_link_is_no_death_of_the_agent(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->restart_limit = 1;
	static const char resume[] = "'sessionCapabilities':{'resume':{}}";
	begin_offering(fixture, resume);
	for (int i = 0; i < 3; i++) {
		stage_settle(&fixture->stage);
		actor_is_lost(fixture->stage.actors[i], "the cable was cut");
		stage_settle(&fixture->stage);
		editor_says(fixture, "'id':%d,%s", i + 2, prompt);
		free(agent_next_line(fixture, i + 1)); // initialize
		agent_says(fixture, i + 1,
			"'id':0,'result':{'protocolVersion':1,'agentCapabilities':{%s}}", resume);
		free(agent_next_line(fixture, i + 1)); // session/resume
		agent_says(fixture, i + 1, "'id':1,'result':{}");
		free(agent_next_line(fixture, i + 1)); // the prompt
		agent_says(fixture, i + 1, "'id':2,'result':{'stopReason':'end_turn'}");
		free(editor_line(fixture));
	}
	assert_int_equal(fixture->stage.actor_count, 4);
}

static void test_an_agent_that_dies_again_is_told(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->restart_limit = 1;
	begin_offering(fixture, "'loadSession':true");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	free(agent_next_line(fixture, 1));
	agent_dies(fixture, 1);
	editor_hears_failure(fixture, "2", "AGENT_EXITED", "initialize", "");
	editor_says(fixture, "'id':3,%s", prompt);
	editor_hears_failure(fixture, "3", "RESOURCE_LIMIT_EXCEEDED", "session", "restart-limit");
	assert_int_equal(fixture->stage.actor_count, 2);
}

static void test_prompts_that_wait_can_be_cancelled(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'loadSession':true");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	editor_says(fixture, "'id':3,%s", prompt);
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':3}");
	editor_hears(fixture, "'id':3,'result':{'stopReason':'cancelled'}");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_hears(fixture, "'id':2,'result':{'stopReason':'cancelled'}");
	greet_again(fixture, 1);
	free(agent_next_line(fixture, 1));
	agent_says(fixture, 1, "'id':1,'result':null");
	editor_says(fixture, "'id':4,%s", prompt);
	agent_hears(fixture, 1, "'id':2,%s", prompt);
}

/* The prompt waits for the session/load, which waits for the restoring. */
static void test_a_prompt_behind_a_load_that_waits_can_be_cancelled(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'loadSession':true");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	editor_says(
		fixture, "'id':3,'method':'session/load','params':{'sessionId':'s','cwd':'/w'}");
	editor_says(fixture, "'id':4,%s", prompt);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_hears(fixture, "'id':4,'result':{'stopReason':'cancelled'}");
	editor_hears(fixture, "'id':2,'result':{'stopReason':'cancelled'}");
}

static void test_what_waits_for_an_agents_end_is_told_why_none_is_started(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.ignores_kill = true;
	begin_offering(fixture, "'loadSession':true");
	actor_exits(agent(fixture, 0), 1, 0);
	stage_settle(&fixture->stage);
	editor_says(fixture, "'id':2,'method':'session/new','params':{'cwd':'/w'}");
	stage_settle(&fixture->stage);
	relay_end(fixture->relay);
	actor_empties(agent(fixture, 0));
	editor_hears_failure(fixture, "2", "SHUTTING_DOWN", "stop", "the broker is ending");
	assert_int_equal(fixture->stage.actor_count, 1);
}

static void test_a_session_is_closed_without_an_agent(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'loadSession':true");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,'method':'session/close','params':{'sessionId':'s'}");
	editor_hears(fixture, "'id':2,'result':{}");
	assert_int_equal(fixture->stage.actor_count, 1);
}

#define SET_MODE "'method':'session/set_mode','params':{'sessionId':'s','modeId':'%s'}"
#define SET_OPTION                                                                                 \
	"'method':'session/set_config_option','params':{'sessionId':'s','configId':'%s','value':"  \
	"'%s'}"
#define SET_MODEL "'method':'session/set_model','params':{'sessionId':'s','modelId':'%s'}"
#define IN_MODE                                                                                    \
	"'method':'session/update','params':{'sessionId':'s','update':"                            \
	"{'sessionUpdate':'current_mode_update','currentModeId':'%s'}}"

/* The editor chooses a mode, an option and a model in a session, and its agent dies. */
static void choose_and_die(struct fixture *fixture)
{
	begin_offering(fixture, "'sessionCapabilities':{'resume':{}}");
	editor_says(fixture, "'id':2," SET_MODE, "read-only");
	editor_says(fixture, "'id':3," SET_OPTION, "effort", "high");
	editor_says(fixture, "'id':4," SET_MODEL, "m");
	editor_says(fixture, "'id':5," SET_MODE, "never-answered");
	for (int i = 0; i < 4; i++) {
		free(agent_next_line(fixture, 0));
	}
	for (int i = 2; i < 5; i++) {
		agent_says(fixture, 0, "'id':%d,'result':{}", i);
		editor_hears(fixture, "'id':%d,'result':{}", i);
	}
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "5", "AGENT_EXITED", "relay", "");
	editor_says(fixture, "'id':6,%s", prompt);
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_says(fixture, 1,
		"'id':0,'result':{'protocolVersion':1,'agentCapabilities':"
		"{'sessionCapabilities':{'resume':{}}}}");
	agent_hears(fixture, 1,
		"'id':1,'method':'session/resume','params':{'sessionId':'s','cwd':'/w','x':[1e2]}");
	agent_says(fixture, 1, "'id':1,'result':{}");
	agent_hears(fixture, 1, "'id':2," SET_MODEL, "m");
	agent_hears_nothing(fixture, 1);
	agent_says(fixture, 1, "'id':2,'result':{}");
}

static void test_what_was_chosen_is_chosen_again_before_the_prompt(void **state)
{
	struct fixture *fixture = *state;
	choose_and_die(fixture);
	agent_hears(fixture, 1, "'id':3," SET_MODE, "read-only");
	agent_says(fixture, 1, "'id':3,'result':{}");
	editor_hears(fixture, IN_MODE, "read-only");
	agent_hears(fixture, 1, "'id':4," SET_OPTION, "effort", "high");
	agent_hears_nothing(fixture, 1);
	editor_says(fixture, "'id':7,%s", prompt); // waits behind the first
	agent_says(fixture, 1, "'id':4,'result':{'configOptions':[]}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','update':"
			      "{'sessionUpdate':'config_option_update','configOptions':[]}}");
	agent_hears(fixture, 1, "'id':5,%s", prompt);
	agent_hears(fixture, 1, "'id':6,%s", prompt);
	editor_hears_nothing(fixture);
	agent_dies(fixture, 1);
	editor_hears_failure(fixture, "6", "AGENT_EXITED", "relay", "");
	editor_hears_failure(fixture, "7", "AGENT_EXITED", "relay", "");
}

/* The agent may quote a key in its message. */
static void test_the_words_of_a_refusal_are_the_editors_and_not_the_logs(void **state)
{
	struct fixture *fixture = *state;
	struct capture capture;
	choose_and_die(fixture);
	agent_hears(fixture, 1, "'id':3," SET_MODE, "read-only");
	capture_pipe(&capture);
	agent_says(fixture, 1, "'id':3,'error':{'code':1,'message':'no','data':'sesame'}");
	editor_hears_failure(fixture, "6", "CHOICE_REFUSED", "session", "no");
	editor_says(fixture, "'id':7,%s", prompt);
	agent_hears(fixture, 1, "'id':4," SET_MODE, "read-only");
	agent_says(fixture, 1, "'id':4,'error':{'code':1,'message':'sesame'}");
	editor_hears_failure(fixture, "7", "CHOICE_REFUSED", "session", "sesame");
	char *text = mem_strdup(logged(&capture));
	capture_stop(&capture);
	assert_names(text, "session s | mode \"read-only\" | CHOICE_REFUSED");
	assert_null(strstr(text, "sesame"));
	free(text);
}

static void test_a_choice_that_is_refused_fails_the_prompt_until_another_is_made(void **state)
{
	struct fixture *fixture = *state;
	choose_and_die(fixture);
	agent_hears(fixture, 1, "'id':3," SET_MODE, "read-only");
	agent_says(fixture, 1, "'id':3,'error':{'code':1,'message':'no','data':{'why':'because'}}");
	char *refusal = editor_line(fixture);
	assert_non_null(strstr(refusal, "\"id\":6,"));
	assert_non_null(strstr(refusal, "CHOICE_REFUSED"));
	assert_non_null(strstr(refusal, "mode \\\"read-only\\\""));
	assert_non_null(strstr(refusal, "{\\\"why\\\":\\\"because\\\"}"));
	free(refusal);
	agent_hears_nothing(fixture, 1);
	editor_says(fixture, "'id':7,%s", prompt); // the agent may accept it now
	agent_hears(fixture, 1, "'id':4," SET_MODE, "read-only");
	agent_says(fixture, 1, "'id':4,'error':{'code':1,'message':'no'}");
	editor_hears_failure(fixture, "7", "CHOICE_REFUSED", "session", "read-only");
	editor_says(fixture, "'id':8," SET_MODE, "agent");
	agent_hears(fixture, 1, "'id':5," SET_MODE, "agent");
	agent_says(fixture, 1, "'id':5,'result':{}");
	editor_hears(fixture, "'id':8,'result':{}");
	editor_says(fixture, "'id':9,%s", prompt);
	agent_hears(fixture, 1, "'id':6," SET_OPTION, "effort", "high");
	agent_says(fixture, 1, "'id':6,'result':{}");
	agent_hears(fixture, 1, "'id':7,%s", prompt);
	editor_hears_nothing(fixture);
}

static void test_an_agent_that_dies_while_it_is_told_fails_the_prompt(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->restart_limit = 3;
	choose_and_die(fixture);
	agent_hears(fixture, 1, "'id':3," SET_MODE, "read-only");
	agent_dies(fixture, 1);
	editor_hears_failure(fixture, "6", "AGENT_EXITED", "relay", "");
	editor_says(fixture, "'id':7,%s", prompt);
	greet_again(fixture, 2);
	free(agent_next_line(fixture, 2));
	agent_says(fixture, 2, "'id':1,'result':{}");
	agent_hears(fixture, 2, "'id':2," SET_MODEL, "m");
}

static void test_a_mode_that_the_agent_told_of_is_the_one_to_go_back_to(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'sessionCapabilities':{'resume':{}}");
	editor_says(fixture, "'id':2," SET_MODE, "plan");
	free(agent_next_line(fixture, 0));
	agent_says(fixture, 0, "'id':2,'result':{}");
	editor_hears(fixture, "'id':2,'result':{}");
	agent_says(fixture, 0, IN_MODE, "default");
	editor_hears(fixture, IN_MODE, "default");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':3,%s", prompt);
	greet_again(fixture, 1);
	free(agent_next_line(fixture, 1));
	agent_says(fixture, 1, IN_MODE, "agent"); // it has not heard of the choice yet
	agent_says(fixture, 1, "'id':1,'result':{}");
	agent_hears(fixture, 1, "'id':2," SET_MODE, "default");
}

static void test_an_option_that_is_gone_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'sessionCapabilities':{'resume':{}}");
	editor_says(fixture, "'id':2," SET_OPTION, "effort", "high");
	free(agent_next_line(fixture, 0));
	agent_says(fixture, 0, "'id':2,'result':{}");
	editor_hears(fixture, "'id':2,'result':{}");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':3,%s", prompt);
	greet_again(fixture, 1);
	free(agent_next_line(fixture, 1));
	agent_says(fixture, 1, "'id':1,'result':{'configOptions':[{'id':'model'}]}");
	free(editor_line(fixture));
	agent_hears(fixture, 1, "'id':2," SET_OPTION, "effort", "high");
	agent_says(fixture, 1, "'id':2,'error':{'code':1,'message':'no'}");
	editor_hears_failure(fixture, "3", "CHOICE_REFUSED", "session", "effort");
	editor_says(fixture, "'id':4,%s", prompt);
	agent_hears(fixture, 1, "'id':3,%s", prompt);
}

static void test_the_end_answers_what_waits(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'loadSession':true");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	editor_says(fixture, "'id':3,'method':'_x','params':{'sessionId':'s'}");
	free(agent_next_line(fixture, 1));
	editor_closes(fixture);
	editor_hears(fixture, "'id':2,'result':{'stopReason':'cancelled'}");
	editor_hears_failure(fixture, "3", "SHUTTING_DOWN", "stop", "");
	agent_dies(fixture, 1);
	stage_until(&fixture->stage, &fixture->is_finished);
}

static void test_a_relay_that_is_destroyed_meanwhile(void **state)
{
	struct fixture *fixture = *state;
	begin_offering(fixture, "'loadSession':true");
	agent_dies(fixture, 0);
	editor_says(fixture, "'id':2,%s", prompt);
	greet_again(fixture, 1);
	relay_destroy(fixture->relay);
	fixture->relay = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_what_is_asked_waits_for_a_resume),
		RELAY_TEST(test_a_replay_is_not_shown_but_how_it_is_now),
		RELAY_TEST(test_a_replay_that_goes_on_is_hidden_and_waited_for),
		RELAY_TEST(test_a_relay_that_is_destroyed_while_a_replay_goes_on),
		RELAY_TEST(test_a_refusal_is_told_to_all_who_wait),
		RELAY_TEST(test_a_lost_link_is_no_death_of_the_agent),
		RELAY_TEST(test_an_agent_that_dies_again_is_told),
		RELAY_TEST(test_prompts_that_wait_can_be_cancelled),
		RELAY_TEST(test_a_prompt_behind_a_load_that_waits_can_be_cancelled),
		RELAY_TEST(test_what_waits_for_an_agents_end_is_told_why_none_is_started),
		RELAY_TEST(test_a_session_is_closed_without_an_agent),
		RELAY_TEST(test_what_was_chosen_is_chosen_again_before_the_prompt),
		RELAY_TEST(test_the_words_of_a_refusal_are_the_editors_and_not_the_logs),
		RELAY_TEST(test_a_choice_that_is_refused_fails_the_prompt_until_another_is_made),
		RELAY_TEST(test_an_agent_that_dies_while_it_is_told_fails_the_prompt),
		RELAY_TEST(test_a_mode_that_the_agent_told_of_is_the_one_to_go_back_to),
		RELAY_TEST(test_an_option_that_is_gone_is_told_once),
		RELAY_TEST(test_the_end_answers_what_waits),
		RELAY_TEST(test_a_relay_that_is_destroyed_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
