/* SPDX-License-Identifier: MIT */
#include "broker/agent/login.h"

#include <signal.h>
#include <stdlib.h>

#include "tests/support/facts.h"
#include "tests/unit/stage.h"

enum { NOT_SET = -1 };

/* ---- the run ---- */

/* A stage whose process does what the test says, after it was started. */
struct fixture {
	struct stage stage;
	ev_prepare watch; // looks for the process
	ev_timer deadline;
	void (*play)(struct actor *actor);
	bool has_played;
	int status;
	char *profile; // of the note
	struct error err;
};

static void on_turn(struct ev_loop *loop, ev_prepare *watcher, int events)
{
	struct fixture *fixture = CONTAINER_OF(watcher, struct fixture, watch);
	struct actor *actor = fixture->stage.actor_count > 0 ? fixture->stage.actors[0] : NULL;
	if (actor && actor->has_started && !fixture->has_played && fixture->play) {
		fixture->has_played = true;
		fixture->play(actor);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	fail_msg("it never ended");
}

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	stage_init(&fixture->stage);
	fixture->status = NOT_SET;
	ev_prepare_init(&fixture->watch, on_turn);
	ev_prepare_start(fixture->stage.loop, &fixture->watch);
	ev_timer_init(&fixture->deadline, on_deadline, 30., 0.);
	ev_timer_start(fixture->stage.loop, &fixture->deadline);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	ev_prepare_stop(fixture->stage.loop, &fixture->watch);
	ev_timer_stop(fixture->stage.loop, &fixture->deadline);
	stage_finish(&fixture->stage);
	free(fixture);
	return 0;
}

static bool run(struct fixture *fixture, void (*play)(struct actor *actor))
{
	fixture->play = play;
	static const char *const args[] = {"--login", NULL};
	static const char *const env[] = {
		"LD_PRELOAD=./x.so", "ACP_BROKER_LOGIN=of one behind", NULL};
	const struct login_note note = {
		.profile = fixture->profile, .args = (char **)args, .env = (char **)env};
	const struct login_request request = {.loop = fixture->stage.loop,
		.provider = &fixture->stage.provider,
		.profile = &fixture->stage.config.profile,
		.note = &note};
	return login_run(&request, &fixture->status, &fixture->err);
}

static void assert_let_go(struct fixture *fixture)
{
	assert_int_equal(stage_open_sandboxes(&fixture->stage), 0);
	for (int i = 0; i < fixture->stage.actor_count; i++) {
		assert_null(fixture->stage.actors[i]->listener);
	}
}

static void exits_with_3(struct actor *actor)
{
	actor_dies(actor, 3, 0);
}

static void is_interrupted(struct actor *actor)
{
	actor_dies(actor, 0, SIGINT);
}

static void is_lost(struct actor *actor)
{
	actor_is_lost(actor, "the link is down");
}

static void test_the_agent_runs_on_the_callers_terminal(void **state)
{
	struct fixture *fixture = *state;
	char **env = mem_alloc_zero(3 * sizeof(*env));
	env[0] = mem_strdup("ACP_BROKER_LOGIN=of this one");
	env[1] = mem_strdup("KEY=value");
	free(fixture->stage.config.profile.agent_env);
	fixture->stage.config.profile.agent_env = env;
	assert_true(run(fixture, exits_with_3));
	struct actor *actor = fixture->stage.actors[0];
	assert_true(actor->was_foreground);
	assert_string_equal(actor->argv[0], "/bin/agent");
	assert_string_equal(actor->argv[1], "--acp");
	assert_string_equal(actor->argv[2], "--login");
	assert_null(actor->argv[3]);
	assert_string_equal(actor->env[0], "PATH=/bin");
	assert_string_equal(actor->env[1], "KEY=value");
	assert_string_equal(actor->env[2], "LD_PRELOAD=./x.so");
	assert_string_equal(actor->env[3], "ACP_BROKER_LOGIN=of one behind");
	assert_null(actor->env[4]);
	assert_int_equal(fixture->status, 3);
	assert_let_go(fixture);
}

static void test_a_signal_is_told_as_a_shell_tells_it(void **state)
{
	struct fixture *fixture = *state;
	assert_true(run(fixture, is_interrupted));
	assert_int_equal(fixture->status, 128 + SIGINT);
}

/* The broker waits for the processes that the agent leaves behind. */
static void exits_and_empties_later(struct actor *actor)
{
	actor->has_exited = true;
	actor->listener->on_exited(actor->data, (struct process_status){.code = 4});
	soon_start(&actor->killed);
}

static void test_it_waits_for_what_the_agent_started(void **state)
{
	struct fixture *fixture = *state;
	assert_true(run(fixture, exits_and_empties_later));
	assert_int_equal(fixture->status, 4);
	assert_true(fixture->stage.actors[0]->has_emptied);
}

static void assert_fails(
	struct fixture *fixture, void (*play)(struct actor *actor), const char *facts)
{
	assert_false(run(fixture, play));
	assert_names(fixture->err.text, facts);
	assert_int_equal(fixture->status, NOT_SET);
	assert_let_go(fixture);
}

static void test_a_sandbox_that_is_refused_is_told(void **state)
{
	struct fixture *fixture = *state;
	error_set(&fixture->stage.prepare_error, ERROR_CONFIG, "no host");
	assert_fails(fixture, NULL, "/bin/agent | login | no host");
	assert_int_equal(fixture->err.code, ERROR_CONFIG);
}

static void test_a_sandbox_that_fails_is_told(void **state)
{
	struct fixture *fixture = *state;
	error_set(&fixture->stage.ready_error, ERROR_UNAVAILABLE, "refused");
	assert_fails(fixture, NULL, "running /bin/agent for its login: refused");
}

static void test_what_an_agent_elsewhere_has_chosen_does_not_run_here(void **state)
{
	struct fixture *fixture = *state;
	char name[] = "devbox";
	fixture->profile = name;
	assert_fails(fixture, NULL, "/bin/agent | login | profile devbox");
	assert_int_equal(fixture->stage.actor_count, 0);
	char other[] = "other";
	char *before = fixture->stage.config.profile.name;
	fixture->stage.config.profile.name = other;
	fixture->stage.capabilities.has_terminals = true;
	assert_fails(fixture, NULL, "/bin/agent | login | profile devbox");
	assert_int_equal(fixture->stage.actor_count, 0);
	fixture->profile = NULL; // of an agent on this machine
	assert_fails(fixture, NULL, "/bin/agent | login | this machine");
	assert_int_equal(fixture->stage.actor_count, 0);
	fixture->stage.config.profile.name = before;
}

static void test_a_process_that_cannot_be_asked_for_is_told(void **state)
{
	struct fixture *fixture = *state;
	error_set(&fixture->stage.exec_error, ERROR_SYSTEM, "no more processes");
	assert_fails(fixture, NULL, "/bin/agent | login | no more processes");
}

static void test_a_process_that_does_not_start_is_told(void **state)
{
	struct fixture *fixture = *state;
	error_set(&fixture->stage.start_error, ERROR_NOT_FOUND, "not found in PATH=/bin");
	assert_fails(fixture, NULL, "/bin/agent | login | not found in PATH=/bin");
}

static void test_a_process_that_is_lost_is_told(void **state)
{
	struct fixture *fixture = *state;
	assert_fails(fixture, is_lost, "/bin/agent | login | link is down");
}

#define LOGIN_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOGIN_TEST(test_the_agent_runs_on_the_callers_terminal),
		LOGIN_TEST(test_a_signal_is_told_as_a_shell_tells_it),
		LOGIN_TEST(test_it_waits_for_what_the_agent_started),
		LOGIN_TEST(test_a_sandbox_that_is_refused_is_told),
		LOGIN_TEST(test_a_sandbox_that_fails_is_told),
		LOGIN_TEST(test_what_an_agent_elsewhere_has_chosen_does_not_run_here),
		LOGIN_TEST(test_a_process_that_cannot_be_asked_for_is_told),
		LOGIN_TEST(test_a_process_that_does_not_start_is_told),
		LOGIN_TEST(test_a_process_that_is_lost_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
