/* SPDX-License-Identifier: MIT */
#include "tests/unit/agent_fixture.h"

#include <signal.h>
#include <unistd.h>

#include "base/words.h"

enum { SHORT_MS = 20, SOON_MS = 500, LONG_MS = 60000 };

/* Every deadline is far away, so that a test must set the one that it waits for. */
static void no_deadlines(struct fixture *fixture)
{
	struct profile *profile = profile_of(fixture);
	profile->stop_eof_ms = profile->stop_term_ms = profile->stop_kill_ms = LONG_MS;
	profile->drain_timeout_ms = LONG_MS;
}

static void wait_for(struct fixture *fixture, int ms)
{
	long long end = clock_now_ms() + ms;
	while (clock_now_ms() < end) {
		stage_wait_turn(&fixture->stage);
	}
}

/* Runs the loop until the broker has done this to the process. */
static void wait_told(struct actor *actor, const char *expected)
{
	long long deadline = clock_now_ms() + LONG_MS / 2;
	while (strlen(actor->told) < strlen(expected) && clock_now_ms() < deadline) {
		stage_wait_turn(actor->stage);
	}
	actor_assert_told(actor, expected);
}

/* ---- an end that the agent chooses ---- */

static void test_how_it_ended_is_told_with_its_last_words(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	fixture->stage.ignores_kill = true;
	no_deadlines(fixture);
	assert_int_equal(write(actor->err, "panic: no memory\n", 17), 17);
	actor_exits(actor, 3, 0);
	assert_told(fixture, "down ");
	assert_down(fixture, "AGENT_EXITED", "relay",
		"agent \"agent\" (/bin/agent) exited with status 3");
	assert_string_equal(fixture->detail, "panic: no memory\n");
	actor_empties(actor);
	stage_settle(&fixture->stage);
	assert_told(fixture, "gone ");
}

static void test_a_signal_is_told_by_its_name_and_the_step_it_was_at(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	agent_expect_answer(fixture->agent, "initialize");
	agent_note_noise(fixture->agent, SPAN_LITERAL("usage: agent"));
	actor_dies(actor, 0, SIGSEGV);
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "AGENT_EXITED", "initialize",
		"\"agent\" (/bin/agent) | SIGSEGV | initialize | 1 lines | first: usage: agent");
}

static void test_its_last_lines_come_before_its_end(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	fixture->stage.ignores_kill = true;
	no_deadlines(fixture);
	actor_writes(actor, SPAN_LITERAL("{\"a\":1}\n{\"b\":"));
	actor_exits_holding(actor, 0, 0);
	assert_told(fixture, "frame:{\"a\":1} ");
	actor_writes(actor, SPAN_LITERAL("2}"));
	fd_close(&actor->err);
	actor_closes(actor, &actor->out);
	assert_told(fixture, "frame:{\"b\":2} down ");
}

static void test_a_child_that_holds_its_output_gets_the_drain_timeout(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	no_deadlines(fixture);
	profile_of(fixture)->drain_timeout_ms = SOON_MS;
	actor_exits_holding(actor, 0, 0);
	actor_writes(actor, SPAN_LITERAL("{\"late\":1}\n"));
	stage_until(&fixture->stage, &fixture->is_gone);
	assert_told(fixture, "frame:{\"late\":1} down gone ");
	assert_down(fixture, "AGENT_EXITED", "relay",
		"agent \"agent\" (/bin/agent) exited with status 0");
	actor_assert_told(actor, "kill ");
}

static void test_an_agent_that_closes_its_output_is_ended(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	no_deadlines(fixture);
	profile_of(fixture)->drain_timeout_ms = SHORT_MS;
	actor_closes(actor, &actor->out);
	assert_told(fixture, "");
	stage_until(&fixture->stage, &fixture->is_gone);
	assert_down(
		fixture, "AGENT_EXITED", "relay", "agent \"agent\" (/bin/agent) closed its output");
	actor_assert_told(actor, "kill ");
}

static void test_output_that_waits_for_the_editor_is_not_cut_off(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	fixture->stage.ignores_kill = true;
	no_deadlines(fixture);
	profile_of(fixture)->drain_timeout_ms = SHORT_MS;
	fixture->refuse = 1;
	actor_writes(actor, SPAN_LITERAL("{\"a\":1}\n"));
	actor_exits(actor, 0, 0);
	wait_for(fixture, 4 * SHORT_MS);
	assert_told(fixture, "refused:{\"a\":1} ");
	assert_int_equal(fixture->exits, 1); // who refuses it may have no reason to any more
	link_resume(agent_link(fixture->agent));
	stage_settle(&fixture->stage);
	assert_told(fixture, "frame:{\"a\":1} down ");
	assert_int_equal(fixture->exits, 1);
}

static void test_it_is_gone_only_when_nothing_of_it_runs(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	fixture->stage.ignores_kill = true;
	no_deadlines(fixture);
	actor_exits(actor, 0, 0);
	assert_told(fixture, "down ");
	actor_assert_told(actor, "kill ");
	wait_for(fixture, SHORT_MS);
	assert_told(fixture, "");
	actor_empties(actor);
	stage_settle(&fixture->stage);
	assert_told(fixture, "gone ");
}

/* ---- the stop ---- */

static void test_a_stop_sends_what_is_queued_and_closes_its_input(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	no_deadlines(fixture);
	send_text(fixture, "{\"last\":1}");
	agent_stop(fixture->agent);
	char *line = actor_line(actor);
	assert_string_equal(line, "{\"last\":1}");
	free(line);
	assert_false(actor_reads(actor)); // the end of file
	actor_writes(actor, SPAN_LITERAL("{\"bye\":1}\n"));
	actor_assert_told(actor, "");
	actor_dies(actor, 0, 0);
	stage_settle(&fixture->stage);
	assert_told(fixture, "frame:{\"bye\":1} down gone ");
	assert_down(fixture, "AGENT_EXITED", "relay",
		"agent \"agent\" (/bin/agent) exited with status 0");
}

static void test_an_agent_that_ignores_everything_is_told_step_by_step(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	no_deadlines(fixture);
	fixture->stage.ignores_kill = true;
	profile_of(fixture)->stop_eof_ms = SHORT_MS;
	profile_of(fixture)->stop_term_ms = SHORT_MS;
	profile_of(fixture)->stop_kill_ms = SHORT_MS;
	agent_stop(fixture->agent);
	stage_settle(&fixture->stage);
	actor_assert_told(actor, "");
	wait_told(actor, "TERM ");
	wait_told(actor, "kill ");
	stage_until(&fixture->stage, &fixture->is_gone);
	assert_told(fixture, "down gone ");
	assert_string_equal(fixture->code, "AGENT_EXITED");
}

static void test_each_further_stop_takes_the_next_step(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	no_deadlines(fixture);
	agent_stop(fixture->agent);
	assert_false(actor_reads(actor));
	actor_assert_told(actor, "");
	agent_stop(fixture->agent);
	actor_assert_told(actor, "TERM ");
	fixture->stage.ignores_kill = true;
	agent_stop(fixture->agent);
	actor_assert_told(actor, "kill ");
	agent_stop(fixture->agent);
	actor_assert_told(actor, "");
	actor_dies(actor, 0, SIGKILL);
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	agent_stop(fixture->agent);
	stage_settle(&fixture->stage);
	assert_told(fixture, "");
}

static void test_what_an_agent_leaves_behind_at_its_stop_is_killed(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	no_deadlines(fixture);
	fixture->stage.ignores_kill = true;
	agent_stop(fixture->agent);
	actor_exits_holding(actor, 0, 0); // a child of the process has the output
	actor_assert_told(actor, "kill ");
	actor_empties(actor);
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
}

/* The agent is tidying up: the deadlines of the stop apply, and SIGTERM comes before SIGKILL. */
static void test_output_closed_in_a_stop_leaves_it_its_time(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	no_deadlines(fixture);
	profile_of(fixture)->drain_timeout_ms = SHORT_MS;
	agent_stop(fixture->agent);
	actor_closes(actor, &actor->out);
	wait_for(fixture, 4 * SHORT_MS);
	actor_assert_told(actor, "");
	assert_told(fixture, "");
	actor_dies(actor, 0, 0);
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
}

static void test_a_stop_before_the_sandbox_is_ready_ends_it(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.holds_ready = true;
	create(fixture);
	agent_stop(fixture->agent);
	assert_told(fixture, "");
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "SHUTTING_DOWN", "stop", "broker ended | agent");
	stage_ready(&fixture->stage); // too late: nothing starts any more
	stage_settle(&fixture->stage);
	assert_int_equal(fixture->stage.actor_count, 0);
}

/* ---- a sandbox in which no agent was to start ---- */

/* The setup of the profile runs in the sandbox; returns its process. */
static struct actor *set_it_up(struct fixture *fixture)
{
	static const char *const line[] = {"install it", NULL};
	words_append_all(&profile_of(fixture)->setup, line);
	fixture->stage.can_withdraw = true;
	create(fixture);
	stage_settle(&fixture->stage);
	assert_told(fixture, "");
	assert_int_equal(fixture->stage.actor_count, 1);
	return fixture->stage.actors[0];
}

static void test_a_sandbox_whose_setup_fails_is_taken_back(void **state)
{
	struct fixture *fixture = *state;
	struct actor *setup = set_it_up(fixture);
	actor_dies(setup, 7, 0);
	stage_until(&fixture->stage, &fixture->is_gone);
	assert_told(fixture, "down gone ");
	assert_string_equal(fixture->code, "SETUP_FAILED");
	assert_int_equal(fixture->stage.withdrawn, 1);
}

static void test_a_sandbox_whose_setup_is_stopped_is_taken_back(void **state)
{
	struct fixture *fixture = *state;
	struct actor *setup = set_it_up(fixture);
	agent_stop(fixture->agent);
	stage_until(&fixture->stage, &fixture->is_gone);
	assert_told(fixture, "down gone ");
	assert_string_equal(fixture->code, "SHUTTING_DOWN");
	assert_names(setup->told, "destroyed");
	assert_int_equal(fixture->stage.withdrawn, 1);
}

static void test_a_sandbox_in_which_the_agent_started_is_not_taken_back(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.can_withdraw = true;
	actor_dies(start(fixture), 1, 0);
	stage_until(&fixture->stage, &fixture->is_gone);
	assert_int_equal(fixture->stage.withdrawn, 0);
}

/* ---- ended for a reason ---- */

static void test_a_failure_is_told_and_the_tree_is_killed(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	struct error err;
	agent_fail(
		fixture->agent, failure_set(&err, "AGENT_START_FAILED", "initialize", "it lies"));
	err.text[0] = 'X'; // it was copied
	assert_told(fixture, "");
	actor_assert_told(actor, "kill ");
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "AGENT_START_FAILED", "initialize", "it lies");
}

static void test_the_first_failure_is_the_one_that_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	start(fixture);
	agent_fail(fixture->agent, failure_set(&err, "TIMEOUT_EXCEEDED", "relay", "first"));
	agent_fail(fixture->agent, failure_set(&err, "AGENT_EXITED", "relay", "second"));
	stage_settle(&fixture->stage);
	assert_told(fixture, "down gone ");
	assert_down(fixture, "TIMEOUT_EXCEEDED", "relay", "first");
}

static void test_of_many_last_words_the_end_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture);
	struct buf words;
	buf_init(&words, 1 << 20);
	for (int i = 0; i < 1500; i++) {
		assert_true(buf_append_format(&words, NULL, "line %d of its last words\n", i));
	}
	assert_true(write(actor->err, buf_span(&words).data, words.len) == (ssize_t)words.len);
	actor_dies(actor, 1, 0);
	stage_settle(&fixture->stage);
	size_t len = strlen(fixture->detail);
	assert_in_range(len, AGENT_STDERR_TAIL - 40, AGENT_STDERR_TAIL);
	assert_int_equal(strncmp(fixture->detail, "line ", 5), 0);
	assert_non_null(strstr(fixture->detail, "\nline 1498 of its last words\nline 1499 of"));
	buf_finish(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		AGENT_TEST(test_how_it_ended_is_told_with_its_last_words),
		AGENT_TEST(test_a_signal_is_told_by_its_name_and_the_step_it_was_at),
		AGENT_TEST(test_its_last_lines_come_before_its_end),
		AGENT_TEST(test_a_child_that_holds_its_output_gets_the_drain_timeout),
		AGENT_TEST(test_an_agent_that_closes_its_output_is_ended),
		AGENT_TEST(test_output_that_waits_for_the_editor_is_not_cut_off),
		AGENT_TEST(test_it_is_gone_only_when_nothing_of_it_runs),
		AGENT_TEST(test_a_stop_sends_what_is_queued_and_closes_its_input),
		AGENT_TEST(test_an_agent_that_ignores_everything_is_told_step_by_step),
		AGENT_TEST(test_each_further_stop_takes_the_next_step),
		AGENT_TEST(test_what_an_agent_leaves_behind_at_its_stop_is_killed),
		AGENT_TEST(test_output_closed_in_a_stop_leaves_it_its_time),
		AGENT_TEST(test_a_stop_before_the_sandbox_is_ready_ends_it),
		AGENT_TEST(test_a_sandbox_whose_setup_fails_is_taken_back),
		AGENT_TEST(test_a_sandbox_whose_setup_is_stopped_is_taken_back),
		AGENT_TEST(test_a_sandbox_in_which_the_agent_started_is_not_taken_back),
		AGENT_TEST(test_a_failure_is_told_and_the_tree_is_killed),
		AGENT_TEST(test_the_first_failure_is_the_one_that_is_told),
		AGENT_TEST(test_of_many_last_words_the_end_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
