/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_hosts.h"

#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "broker/policy/kept_hosts.h"
#include "tests/support/facts.h"
#include "tests/unit/grant_fixture.h"

/* The outcome of connections with `network = ask`, depending on who is asked and on the answer. */

static char state_folder[64];

/* Opens sessions with these names, which share one agent. */
static void begin_asking(struct fixture *fixture, const char *const *sessions)
{
	text_whole(state_folder, sizeof(state_folder), "/tmp/hosts.XXXXXX");
	assert_non_null(mkdtemp(state_folder));
	fixture->state_folder = state_folder;
	settings_add(&profile_of(fixture)->settings, "network", "ask", "test");
	if (sessions) {
		begin_with_sessions(fixture, sessions);
	} else {
		begin_greeted(fixture);
	}
}

static int finish(void **state)
{
	char command[96];
	int result = tear_down(state);
	if (state_folder[0]) {
		text_whole(command, sizeof(command), "rm -r %s", state_folder);
		result |= system(command); // NOLINT(cert-env33-c): of the test's own
		state_folder[0] = '\0';
	}
	return result;
}

static void begin_asking_in_s(struct fixture *fixture)
{
	begin_asking(fixture, (const char *const[]){"s", NULL});
}

static void wishes(struct fixture *fixture, uint32_t id, const char *host, uint16_t port)
{
	stage_wishes(&fixture->stage, id, host, port);
}

static void decided(struct fixture *fixture, const char *expected)
{
	stage_settle(&fixture->stage);
	stage_assert_decided(&fixture->stage, expected);
}

/* The question, owned by the caller. */
static char *hear_question(struct fixture *fixture, int id, const char *host, uint16_t port)
{
	char facts[512];
	char *question = editor_line(fixture);
	text_whole(facts, sizeof(facts),
		"\"id\":%d,\"method\":\"session/request_permission\" | `network = ask` | "
		"Connect to `%s`, port %u\" | \"kind\":\"fetch\"",
		id, host, port);
	assert_names(question, facts);
	return question;
}

static void expect_question(struct fixture *fixture, int id, const char *host, uint16_t port)
{
	free(hear_question(fixture, id, host, port));
}

static void answer(struct fixture *fixture, int id, const char *option)
{
	char facts[128];
	editor_says(fixture, "'id':%d,'result':{'outcome':{'outcome':'selected','optionId':'%s'}}",
		id, option);
	char *line = editor_line(fixture);
	bool is_yes = strncmp(option, "no", 2) != 0;
	text_whole(facts, sizeof(facts), "\"toolCallId\":\"acp-broker-%d\" | \"status\":\"%s\"", id,
		is_yes ? "completed" : "failed");
	assert_names(line, facts);
	free(line);
}

/* The broker withdraws the question, which was not answered. */
static void hear_withdrawn(struct fixture *fixture, int id)
{
	char facts[128];
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':%d}", id);
	char *line = editor_line(fixture);
	text_whole(facts, sizeof(facts), "\"toolCallId\":\"acp-broker-%d\" | \"status\":\"failed\"",
		id);
	assert_names(line, facts);
	free(line);
}

static void prompt_session(struct fixture *fixture, const char *id, const char *session)
{
	editor_says(fixture,
		"'id':%s,'method':'session/prompt','params':{'sessionId':'%s','prompt':[]}", id,
		session);
	free(agent_next_line(fixture, 0));
}

/* ---- answers ---- */

static void test_what_waits_for_one_host_gets_one_question_and_one_answer(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	for (uint32_t id = 1; id <= 3; id++) {
		wishes(fixture, id, "a.example", 443);
	}
	expect_question(fixture, 0, "a.example", 443);
	editor_hears_nothing(fixture);
	decided(fixture, "");
	answer(fixture, 0, "once");
	decided(fixture, "1 yes, 2 yes, 3 yes, ");
	wishes(fixture, 4, "a.example", 443); // "once" was for the waiting connections
	expect_question(fixture, 1, "a.example", 443);
	decided(fixture, "");
	answer(fixture, 1, "no");
	decided(fixture, "4 no, ");
}

static void test_a_yes_for_the_session_is_for_the_port(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	expect_question(fixture, 0, "a.example", 443);
	answer(fixture, 0, "session");
	wishes(fixture, 2, "a.example", 443);
	decided(fixture, "1 yes, 2 yes, ");
	wishes(fixture, 3, "a.example", 22);
	expect_question(fixture, 1, "a.example", 22);
	wishes(fixture, 4, "b.a.example", 443);
	expect_question(fixture, 2, "b.a.example", 443);
	decided(fixture, "");
}

static void test_a_no_is_for_every_port_until_the_next_prompt(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	wishes(fixture, 2, "a.example", 22);
	expect_question(fixture, 0, "a.example", 443);
	editor_hears_nothing(fixture);
	answer(fixture, 0, "no");
	wishes(fixture, 3, "a.example", 80);
	decided(fixture, "1 no, 2 no, 3 no, ");
	editor_hears_nothing(fixture);
	prompt_session(fixture, "9", "s");
	wishes(fixture, 4, "a.example", 443);
	expect_question(fixture, 1, "a.example", 443);
	answer(fixture, 1, "no-session");
	decided(fixture, "4 no, ");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':2,'result':{'stopReason':'cancelled'}");
	free(editor_line(fixture));
	prompt_session(fixture, "10", "s");
	wishes(fixture, 5, "a.example", 22);
	decided(fixture, "5 no, ");
}

static void test_a_later_no_is_for_the_port_of_an_earlier_yes_too(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	expect_question(fixture, 0, "a.example", 443);
	answer(fixture, 0, "session");
	wishes(fixture, 2, "a.example", 22);
	expect_question(fixture, 1, "a.example", 22);
	answer(fixture, 1, "no");
	wishes(fixture, 3, "a.example", 443);
	decided(fixture, "1 yes, 2 no, 3 no, ");
	prompt_session(fixture, "9", "s");
	wishes(fixture, 4, "a.example", 443); // the no was for one turn
	decided(fixture, "4 yes, ");
	wishes(fixture, 5, "a.example", 22);
	expect_question(fixture, 2, "a.example", 22);
	answer(fixture, 2, "no-session");
	wishes(fixture, 6, "a.example", 443);
	decided(fixture, "5 no, 6 no, ");
	editor_hears_nothing(fixture);
}

static void test_the_user_can_end_the_questions(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	expect_question(fixture, 0, "a.example", 443);
	answer(fixture, 0, "session");
	wishes(fixture, 2, "b.example", 443);
	wishes(fixture, 3, "c.example", 443);
	expect_question(fixture, 1, "b.example", 443);
	expect_question(fixture, 2, "c.example", 443);
	editor_says(
		fixture, "'id':1,'result':{'outcome':{'outcome':'selected','optionId':'no-more'}}");
	free(editor_line(fixture));
	hear_withdrawn(fixture, 2);
	wishes(fixture, 4, "d.example", 443);
	wishes(fixture, 5, "a.example", 443);
	decided(fixture, "1 yes, 2 no, 3 no, 4 no, 5 yes, ");
	prompt_session(fixture, "9", "s");
	wishes(fixture, 6, "d.example", 443);
	decided(fixture, "6 no, ");
	editor_hears_nothing(fixture);
}

static void test_always_is_kept_for_the_profile_alone(void **state)
{
	struct error err;
	struct kept_hosts kept = {.count = 0};
	struct fixture *fixture = *state;
	size_t count;
	begin_asking_in_s(fixture);
	const char *profile = profile_of(fixture)->name;
	assert_true(kept_hosts_add(state_folder, "another", "b.example", 443, &err));
	wishes(fixture, 1, "a.example", 443);
	char *question = hear_question(fixture, 0, "a.example", 443);
	assert_non_null(strstr(question, "\"optionId\":\"always\""));
	free(question);
	answer(fixture, 0, "always");
	wishes(fixture, 2, "a.example", 443);
	decided(fixture, "1 yes, 2 yes, ");
	assert_true(kept_hosts_read(&kept, state_folder, &err));
	assert_true(kept_hosts_have(&kept, profile, "a.example", 443));
	assert_false(kept_hosts_have(&kept, profile, "a.example", 22));
	assert_false(kept_hosts_have(&kept, "another", "a.example", 443));
	kept_hosts_finish(&kept);
	wishes(fixture, 3, "b.example", 443); // allowed in another profile
	expect_question(fixture, 1, "b.example", 443);
	assert_true(kept_hosts_forget(state_folder, NULL, "a.example", 0, &count, &err));
	wishes(fixture, 4, "a.example", 443);
	expect_question(fixture, 2, "a.example", 443);
	decided(fixture, "");
}

static void test_an_answer_that_means_nothing_is_a_no(void **state)
{
	static const char *const answers[] = {
		"'result':{'outcome':{'outcome':'selected','optionId':'yes'}}",
		"'result':{'outcome':{'outcome':'cancelled'}}",
		"'result':{'outcome':{'outcome':'selected','optionId':7}}",
		"'result':{}",
		"'error':{'code':-32601,'message':'what?'}",
	};
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	for (uint32_t i = 0; i < ARRAY_LENGTH(answers); i++) {
		char host[32], expected[32];
		text_whole(host, sizeof(host), "%u.example", i);
		wishes(fixture, i + 1, host, 443);
		expect_question(fixture, (int)i, host, 443);
		editor_says(fixture, "'id':%u,%s", i, answers[i]);
		free(editor_line(fixture));
		text_whole(expected, sizeof(expected), "%u no, ", i + 1);
		decided(fixture, expected);
	}
}

/* ---- nobody is asked ---- */

static void test_without_a_session_it_is_refused_and_told(void **state)
{
	struct fixture *fixture = *state;
	begin_asking(fixture, NULL);
	wishes(fixture, 1, "a.example", 443);
	decided(fixture, "1 no told, ");
	editor_hears_nothing(fixture);
}

static void test_a_policy_that_refuses_everything_asks_nothing(void **state)
{
	struct fixture *fixture = *state;
	stage_policy(&fixture->stage, POLICY("mode = deny-all"));
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	decided(fixture, "1 no told, ");
	editor_hears_nothing(fixture);
}

static void test_a_rule_that_refuses_everything_asks_nothing(void **state)
{
	struct fixture *fixture = *state;
	stage_policy(&fixture->stage, POLICY("mode = approve-all", "deny = *"));
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	decided(fixture, "1 no told, ");
	editor_hears_nothing(fixture);
}

static void test_a_policy_that_approves_everything_asks_still(void **state)
{
	struct fixture *fixture = *state;
	stage_policy(&fixture->stage, POLICY("mode = approve-all", "deny = terminal rm"));
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	expect_question(fixture, 0, "a.example", 443);
	decided(fixture, "");
}

static void test_an_editor_that_is_gone_is_not_asked(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	fixture->ends_when_gone = false;
	editor_closes(fixture);
	stage_settle(&fixture->stage);
	wishes(fixture, 1, "a.example", 443);
	decided(fixture, "1 no told, ");
}

/* ---- ends without an answer ---- */

static void test_nobody_answers_in_time(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->permission_timeout_ms = 40;
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	expect_question(fixture, 0, "a.example", 443);
	hear_withdrawn(fixture, 0);
	wishes(fixture, 2, "a.example", 443); // not again before the next prompt
	decided(fixture, "1 no, 2 no, ");
}

static void test_a_program_that_gives_up_takes_its_question_along(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	wishes(fixture, 2, "a.example", 443);
	expect_question(fixture, 0, "a.example", 443);
	stage_wish_goes(&fixture->stage, 1);
	editor_hears_nothing(fixture);
	stage_wish_goes(&fixture->stage, 2);
	hear_withdrawn(fixture, 0);
	editor_says(
		fixture, "'id':0,'result':{'outcome':{'outcome':'selected','optionId':'always'}}");
	decided(fixture, "");
	wishes(fixture, 3, "a.example", 443);
	expect_question(fixture, 1, "a.example", 443);
}

static void test_a_cancelled_turn_refuses_what_waits(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	prompt_session(fixture, "9", "s");
	for (uint32_t id = 1; id <= 4; id++) { // one more than is asked about at a time
		char host[32];
		text_whole(host, sizeof(host), "%u.example", id);
		wishes(fixture, id, host, 443);
	}
	expect_question(fixture, 0, "1.example", 443);
	expect_question(fixture, 1, "2.example", 443);
	expect_question(fixture, 2, "3.example", 443);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	for (int id = 0; id < 3; id++) {
		hear_withdrawn(fixture, id);
	}
	decided(fixture, "1 no, 2 no, 3 no, 4 no, ");
	editor_hears_nothing(fixture);
}

static void test_a_closed_session_refuses_what_is_asked_in_it(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	expect_question(fixture, 0, "a.example", 443);
	editor_says(fixture, "'id':4,'method':'session/close','params':{'sessionId':'s'}");
	hear_withdrawn(fixture, 0);
	decided(fixture, "1 no, ");
}

static void test_an_agent_that_ends_takes_its_answers_along(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	expect_question(fixture, 0, "a.example", 443);
	answer(fixture, 0, "session");
	wishes(fixture, 2, "b.example", 443);
	expect_question(fixture, 1, "b.example", 443);
	agent_dies(fixture, 0);
	hear_withdrawn(fixture, 1);
	decided(fixture, "1 yes, 2 no, ");
}

/* ---- attacks ---- */

static void test_an_agent_cannot_answer_for_the_user(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	expect_question(fixture, 0, "a.example", 443);
	agent_says(fixture, 0,
		"'id':0,'result':{'outcome':{'outcome':'selected','optionId':'always'}}");
	decided(fixture, "");
	answer(fixture, 0, "no");
	decided(fixture, "1 no, ");
}

static void test_a_flood_of_hosts_has_few_questions(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	for (uint32_t id = 1; id <= 200; id++) {
		char host[32];
		text_whole(host, sizeof(host), "%u.example", id);
		wishes(fixture, id, host, 443);
	}
	expect_question(fixture, 0, "1.example", 443);
	expect_question(fixture, 1, "2.example", 443);
	expect_question(fixture, 2, "3.example", 443);
	editor_hears_nothing(fixture);
	const char *refused = fixture->stage.decided;
	assert_non_null(strstr(refused, "33 no told, "));
	assert_null(strstr(refused, "32 no"));
	fixture->stage.decided[0] = '\0';
	for (int id = 0; id < GRANT_HOSTS_AT_ONCE; id++) { // the next ones, and then no more
		answer(fixture, id, "no");
		if (id + GRANT_HOSTS_OPEN_MAX < GRANT_HOSTS_AT_ONCE) {
			free(editor_line(fixture));
		}
	}
	editor_hears_nothing(fixture);
}

static void test_of_one_host_one_port_is_asked_about_at_a_time(void **state)
{
	struct fixture *fixture = *state;
	begin_asking_in_s(fixture);
	for (uint32_t id = 1; id <= 20; id++) {
		wishes(fixture, id, "a.example", (uint16_t)(1000 + id));
	}
	expect_question(fixture, 0, "a.example", 1001);
	editor_hears_nothing(fixture);
	answer(fixture, 0, "session");
	expect_question(fixture, 1, "a.example", 1002);
	decided(fixture, "1 yes, ");
	editor_hears_nothing(fixture);
	answer(fixture, 1, "no");
	assert_non_null(strstr(fixture->stage.decided, "2 no, 3 no, "));
	assert_non_null(strstr(fixture->stage.decided, "20 no, "));
	editor_hears_nothing(fixture);
}

static void test_nothing_in_a_programs_name_acts(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.program = "curl `x` <!-- \x1b[2J \xe2\x80\xae moc.doog";
	begin_asking_in_s(fixture);
	wishes(fixture, 1, "a.example", 443);
	char *question = hear_question(fixture, 0, "a.example", 443);
	assert_names(question, "/proc | ``curl `x` <!-- <U+001B>[2J <U+202E> moc.doog`` | forge");
	assert_null(strstr(question, "\xe2\x80\xae"));
	free(question);
}

/* ---- several sessions ---- */

static void test_the_session_that_was_prompted_last_asks(void **state)
{
	static const char *const sessions[] = {"s", "t", "u", NULL};
	struct fixture *fixture = *state;
	begin_asking(fixture, sessions);
	prompt_session(fixture, "9", "t");
	wishes(fixture, 1, "a.example", 443);
	char *question = hear_question(fixture, 0, "a.example", 443);
	assert_non_null(strstr(question, "\"sessionId\":\"t\""));
	free(question);
	prompt_session(fixture, "10", "u");
	wishes(fixture, 2, "b.example", 443);
	question = hear_question(fixture, 1, "b.example", 443);
	assert_non_null(strstr(question, "\"sessionId\":\"u\""));
	free(question);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'t'}");
	hear_withdrawn(fixture, 0); // and not the other one's
	decided(fixture, "1 no, ");
	editor_hears_nothing(fixture);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_what_waits_for_one_host_gets_one_question_and_one_answer),
		CASE(test_a_yes_for_the_session_is_for_the_port),
		CASE(test_a_no_is_for_every_port_until_the_next_prompt),
		CASE(test_a_later_no_is_for_the_port_of_an_earlier_yes_too),
		CASE(test_the_user_can_end_the_questions),
		CASE(test_always_is_kept_for_the_profile_alone),
		CASE(test_an_answer_that_means_nothing_is_a_no),
		CASE(test_without_a_session_it_is_refused_and_told),
		CASE(test_a_policy_that_refuses_everything_asks_nothing),
		CASE(test_a_rule_that_refuses_everything_asks_nothing),
		CASE(test_a_policy_that_approves_everything_asks_still),
		CASE(test_an_editor_that_is_gone_is_not_asked),
		CASE(test_nobody_answers_in_time),
		CASE(test_a_program_that_gives_up_takes_its_question_along),
		CASE(test_a_cancelled_turn_refuses_what_waits),
		CASE(test_a_closed_session_refuses_what_is_asked_in_it),
		CASE(test_an_agent_that_ends_takes_its_answers_along),
		CASE(test_an_agent_cannot_answer_for_the_user),
		CASE(test_a_flood_of_hosts_has_few_questions),
		CASE(test_of_one_host_one_port_is_asked_about_at_a_time),
		CASE(test_nothing_in_a_programs_name_acts),
		CASE(test_the_session_that_was_prompted_last_asks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
