/* SPDX-License-Identifier: MIT */
#include "tests/unit/agent_fixture.h"

enum { SHORT_MS = 20 };

/* ---- the start ---- */

static void test_it_is_started_as_the_profile_says(void **state)
{
	struct fixture *fixture = *state;
	char **env = mem_alloc_zero(3 * sizeof(*env));
	env[0] = mem_strdup("KEY=a\nb");
	env[1] = mem_strdup("PATH=/opt/bin");
	free(profile_of(fixture)->agent_env);
	profile_of(fixture)->agent_env = env;
	struct actor *actor = start(fixture);
	assert_string_equal(actor->argv[0], "/bin/agent");
	assert_string_equal(actor->argv[1], "--acp");
	assert_null(actor->argv[2]);
	assert_string_equal(actor->env[0], "PATH=/opt/bin"); // the profile's wins
	assert_string_equal(actor->env[1], "KEY=a\nb");
	assert_null(actor->env[2]);
	assert_false(actor->was_foreground);
}

static void test_what_is_sent_before_it_runs_arrives(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.holds_ready = true;
	create(fixture);
	send_text(fixture, "{\"early\":1}");
	stage_settle(&fixture->stage);
	assert_int_equal(fixture->stage.actor_count, 0);
	assert_null(agent_sandbox(fixture->agent));
	stage_ready(&fixture->stage);
	assert_told(fixture, "ready ");
	assert_non_null(agent_sandbox(fixture->agent));
	char *line = actor_line(fixture->stage.actors[0]);
	assert_string_equal(line, "{\"early\":1}");
	free(line);
}

static void test_its_lines_are_raised_and_may_be_refused(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	fixture->refuse = 1;
	actor_writes(actor, SPAN_LITERAL("{\"a\":1}\n{\"b\":2}\n"));
	stage_settle(&fixture->stage);
	assert_told(fixture, "refused:{\"a\":1} ");
	link_resume(agent_link(fixture->agent));
	stage_settle(&fixture->stage);
	assert_told(fixture, "frame:{\"a\":1} frame:{\"b\":2} ");
}

static void test_a_slow_agent_drains(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_queue = 100000;
	struct actor *actor = start(fixture);
	enum { SIZE = 600000 }; // more than the pipe and the queue hold
	char *text = mem_alloc_zero(SIZE + 1);
	memset(text, 'x', SIZE);
	send_text(fixture, text);
	free(text);
	stage_settle(&fixture->stage);
	assert_true(link_is_over(agent_link(fixture->agent)));
	free(actor_line(actor));
	assert_told(fixture, "drained ");
}

/* ---- a sandbox or a process that does not come ---- */

static void test_a_sandbox_that_is_refused_is_told_later(void **state)
{
	struct fixture *fixture = *state;
	error_set_reason(&fixture->stage.prepare_error, ERROR_CONFIG, "CONFIG_INVALID", "no host");
	create(fixture);
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "CONFIG_INVALID", "prepare", "agent \"agent\": no host");
}

static void test_a_sandbox_that_fails_is_told(void **state)
{
	struct fixture *fixture = *state;
	error_set(&fixture->stage.ready_error, ERROR_UNAVAILABLE, "connecting: refused");
	create(fixture);
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	assert_down(
		fixture, "SANDBOX_UNAVAILABLE", "prepare", "agent \"agent\": connecting: refused");
}

static void test_a_sandbox_that_never_comes_has_a_deadline(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->prepare_timeout_ms = SHORT_MS;
	fixture->stage.holds_ready = true;
	create(fixture);
	stage_until(&fixture->stage, &fixture->is_gone);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "TIMEOUT_EXCEEDED", "prepare", "\"agent\" | 20 ms | prepare-timeout");
}

static void test_a_process_that_cannot_be_asked_for_is_told(void **state)
{
	struct fixture *fixture = *state;
	error_set(&fixture->stage.exec_error, ERROR_SYSTEM, "no more pipes");
	create(fixture);
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "AGENT_START_FAILED", "start", "agent \"agent\": no more pipes");
}

static void test_a_process_that_does_not_start_has_a_code_of_its_own(void **state)
{
	static const struct {
		enum error_code error;
		const char *code, *text;
	} cases[] = {
		{ERROR_NOT_FOUND, "AGENT_NOT_FOUND", "\"agent\": why | install it"},
		{ERROR_DENIED, "AGENT_NOT_EXECUTABLE", "\"agent\": why"},
		{ERROR_SYSTEM, "AGENT_START_FAILED", "\"agent\": why"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *other = NULL;
		set_up(&other);
		struct fixture *fixture = other;
		error_set(&fixture->stage.start_error, cases[i].error, "starting \"agent\": why");
		create(fixture);
		agent_expect_answer(fixture->agent, "initialize");
		stage_settle(&fixture->stage);
		assert_told(fixture, "ready down gone ");
		assert_down(fixture, cases[i].code, "start", cases[i].text);
		tear_down(&other);
	}
}

/* ---- an answer that does not come ---- */

static void test_an_answer_has_a_deadline_from_the_start_on(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->start_timeout_ms = SHORT_MS;
	fixture->stage.holds_start = true;
	create(fixture);
	agent_expect_answer(fixture->agent, "initialize");
	long long end = clock_now_ms() + 3LL * SHORT_MS;
	while (clock_now_ms() < end) {
		stage_wait_turn(&fixture->stage);
	}
	assert_told(fixture, "ready "); // the process has not even started
	actor_start(fixture->stage.actors[0]);
	stage_until(&fixture->stage, &fixture->is_gone);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "TIMEOUT_EXCEEDED", "initialize",
		"\"agent\" (/bin/agent) | initialize | 20 ms | start-timeout");
	actor_assert_told(fixture->stage.actors[0], "kill ");
}

static void test_what_it_wrote_instead_of_an_answer_is_quoted(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->start_timeout_ms = SHORT_MS;
	start(fixture);
	agent_expect_answer(fixture->agent, "initialize");
	agent_note_noise(fixture->agent, SPAN_LITERAL("Welcome back"));
	agent_note_noise(fixture->agent, SPAN_LITERAL("Type help"));
	stage_until(&fixture->stage, &fixture->is_down);
	assert_down(fixture, "TIMEOUT_EXCEEDED", "initialize",
		"\"agent\" (/bin/agent) | initialize | 20 ms | start-timeout | 2 lines | first: "
		"Welcome back");
}

static void test_an_answer_in_time_ends_the_deadline(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->start_timeout_ms = SHORT_MS;
	start(fixture);
	agent_expect_answer(fixture->agent, "initialize");
	agent_has_answered(fixture->agent);
	long long end = clock_now_ms() + 3LL * SHORT_MS;
	while (clock_now_ms() < end) {
		stage_wait_turn(&fixture->stage);
	}
	assert_told(fixture, "");
	assert_false(agent_is_down(fixture->agent));
}

/* ---- losing it ---- */

static void test_a_lost_sandbox_ends_it(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	stage_lose(&fixture->stage, "the link is down");
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "SANDBOX_UNAVAILABLE", "relay", "agent \"agent\": the link is down");
	actor_assert_told(actor, "kill ");
}

static void test_a_lost_process_ends_it(void **state)
{
	struct fixture *fixture = *state;
	start(fixture);
	actor_is_lost(fixture->stage.actors[0], "nobody knows");
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "SANDBOX_UNAVAILABLE", "relay", "agent \"agent\": nobody knows");
}

static void test_it_can_be_destroyed_at_any_time(void **state)
{
	agent_destroy(NULL);
	for (int steps = 0; steps < 12; steps++) {
		void *other = NULL;
		set_up(&other);
		struct fixture *fixture = other;
		profile_of(fixture)->start_timeout_ms = SHORT_MS;
		create(fixture);
		agent_expect_answer(fixture->agent, "initialize");
		send_text(fixture, "{}");
		for (int i = 0; i < steps; i++) {
			ev_run(fixture->stage.loop, EVRUN_NOWAIT);
		}
		if (steps > 6 && fixture->stage.actor_count > 0) {
			actor_dies(fixture->stage.actors[0], 1, 0);
		}
		fixture->told[0] = '\0';
		agent_destroy(fixture->agent);
		fixture->agent = NULL;
		stage_settle(&fixture->stage);
		assert_told(fixture, "");
		assert_int_equal(stage_open_sandboxes(&fixture->stage), 0);
		tear_down(&other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		AGENT_TEST(test_it_is_started_as_the_profile_says),
		AGENT_TEST(test_what_is_sent_before_it_runs_arrives),
		AGENT_TEST(test_its_lines_are_raised_and_may_be_refused),
		AGENT_TEST(test_a_slow_agent_drains),
		AGENT_TEST(test_a_sandbox_that_is_refused_is_told_later),
		AGENT_TEST(test_a_sandbox_that_fails_is_told),
		AGENT_TEST(test_a_sandbox_that_never_comes_has_a_deadline),
		AGENT_TEST(test_a_process_that_cannot_be_asked_for_is_told),
		cmocka_unit_test(test_a_process_that_does_not_start_has_a_code_of_its_own),
		AGENT_TEST(test_an_answer_has_a_deadline_from_the_start_on),
		AGENT_TEST(test_what_it_wrote_instead_of_an_answer_is_quoted),
		AGENT_TEST(test_an_answer_in_time_ends_the_deadline),
		AGENT_TEST(test_a_lost_sandbox_ends_it),
		AGENT_TEST(test_a_lost_process_ends_it),
		cmocka_unit_test(test_it_can_be_destroyed_at_any_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
