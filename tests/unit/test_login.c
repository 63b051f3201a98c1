/* SPDX-License-Identifier: MIT */
#include "broker/agent/login.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "tests/support/facts.h"
#include "tests/unit/stage.h"

enum { NOT_SET = -1 };

/* ---- the run ---- */

/* The user's. While a login runs, it is stdin, stdout and stderr of this program. */
struct user_terminal {
	int keyboard;
	int fd;
	int before[3]; // the three of this program
	struct termios modes;
};

/* A stage whose process does what the test says, after it was started. */
struct fixture {
	struct stage stage;
	ev_prepare watch; // looks for the process
	ev_timer deadline;
	void (*play)(struct actor *actor);
	bool has_played;
	int status;
	char *profile; // of the note
	struct user_terminal user;
	bool was_own;     // its modes, before the process had started
	bool was_raw;     // after that
	bool was_waiting; // after its exit
	struct error err;
};

static bool is_own(const struct user_terminal *user)
{
	struct termios now;
	assert_int_equal(tcgetattr(user->fd, &now), 0);
	return now.c_iflag == user->modes.c_iflag && now.c_oflag == user->modes.c_oflag &&
	       now.c_lflag == user->modes.c_lflag;
}

static bool has_local_modes(const struct user_terminal *user, tcflag_t wanted)
{
	struct termios now;
	assert_int_equal(tcgetattr(user->fd, &now), 0);
	return (now.c_lflag & (ICANON | ECHO | ISIG)) == wanted && !(now.c_oflag & OPOST);
}

static void look(struct fixture *fixture, const struct actor *actor)
{
	if (fixture->user.fd == -1) {
		return;
	}
	if (!actor->has_started) {
		fixture->was_own = is_own(&fixture->user);
	} else if (!actor->has_exited) {
		fixture->was_raw = has_local_modes(&fixture->user, 0);
	} else {
		fixture->was_waiting = has_local_modes(&fixture->user, ISIG);
	}
}

static void on_turn(struct ev_loop *loop, ev_prepare *watcher, int events)
{
	struct fixture *fixture = CONTAINER_OF(watcher, struct fixture, watch);
	struct actor *actor = fixture->stage.actor_count > 0 ? fixture->stage.actors[0] : NULL;
	if (actor && actor->listener) {
		look(fixture, actor);
	}
	if (actor && fixture->stage.holds_start && !actor->has_started) {
		actor_start(actor);
		look(fixture, actor);
	}
	if (actor && actor->has_started && !fixture->has_played && fixture->play) {
		fixture->has_played = true;
		fixture->play(actor);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	fail_msg("it never ended");
}

static void terminal_enter(struct user_terminal *user)
{
	user->keyboard = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	assert_true(user->keyboard >= 0);
	assert_int_equal(grantpt(user->keyboard), 0);
	assert_int_equal(unlockpt(user->keyboard), 0);
	user->fd = open(ptsname(user->keyboard), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(user->fd >= 0);
	assert_int_equal(tcgetattr(user->fd, &user->modes), 0);
	for (int i = 0; i < 3; i++) {
		user->before[i] = dup(i);
		assert_true(user->before[i] >= 0 && dup2(user->fd, i) == i);
	}
}

/* Returns what the user has seen. */
static void terminal_leave(struct user_terminal *user, char *seen, size_t size)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dup2(user->before[i], i), i);
		fd_close(&user->before[i]);
	}
	size_t len = 0;
	ssize_t got;
	while (len < size - 1 && (got = read(user->keyboard, seen + len, size - 1 - len)) > 0) {
		len += (size_t)got;
	}
	seen[len] = '\0';
	fd_close(&user->fd);
	fd_close(&user->keyboard);
}

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	stage_init(&fixture->stage);
	fixture->status = NOT_SET;
	fixture->user = (struct user_terminal){.keyboard = -1, .fd = -1};
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
	if (fixture->user.fd != -1) { // the test has failed
		char seen[1];
		terminal_leave(&fixture->user, seen, sizeof(seen));
	}
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

/* A login on the host of the profile "default", in a terminal of the user. */
static bool run_there(
	struct fixture *fixture, void (*play)(struct actor *actor), char *seen, size_t size)
{
	fixture->profile = fixture->stage.config.profile.name;
	terminal_enter(&fixture->user);
	bool is_done = run(fixture, play);
	bool is_restored = is_own(&fixture->user);
	terminal_leave(&fixture->user, seen, size);
	assert_true(is_restored);
	return is_done;
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

/* A child that nothing could end holds the terminal. */
static void exits_holding(struct actor *actor)
{
	static const struct span last = SPAN_LITERAL("the end\n");
	assert_int_equal(write(actor->out, last.data, last.len), (ssize_t)last.len);
	actor->has_exited = true;
	actor->listener->on_exited(actor->data, (struct process_status){.code = 5});
}

static void test_keys_go_there_from_its_start_to_its_exit(void **state)
{
	struct fixture *fixture = *state;
	char seen[400];
	fixture->stage.capabilities.has_terminals = true;
	fixture->stage.holds_start = true;
	assert_true(run_there(fixture, exits_with_3, seen, sizeof(seen)));
	assert_int_equal(fixture->status, 3);
	assert_true(fixture->was_own);
	assert_true(fixture->was_raw);
	assert_let_go(fixture);
}

static void test_a_held_terminal_is_given_back_and_that_is_told(void **state)
{
	struct fixture *fixture = *state;
	char seen[400];
	fixture->stage.capabilities.has_terminals = true;
	fixture->stage.ignores_kill = true;
	log_set_level(LOG_LEVEL_WARNING);
	assert_true(run_there(fixture, exits_holding, seen, sizeof(seen)));
	assert_int_equal(fixture->status, 5);
	assert_true(fixture->was_waiting);
	assert_true(fixture->stage.actors[0]->was_killed);
	assert_names(seen, "the end | login | holds its terminal | 5 s");
	assert_let_go(fixture);
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
	assert_int_equal(fixture->stage.prepared, 0); // that would perhaps ask for a password
	fixture->profile = NULL;                      // of an agent on this machine
	assert_fails(fixture, NULL, "/bin/agent | login | this machine");
	assert_int_equal(fixture->stage.actor_count, 0);
	fixture->stage.config.profile.name = before;
}

static void assert_no_terminal_there(struct fixture *fixture, const char *why, const char *facts)
{
	char seen[1];
	fixture->stage.no_terminals = why;
	assert_false(run_there(fixture, NULL, seen, sizeof(seen)));
	assert_names(fixture->err.text, facts);
	assert_int_equal(fixture->stage.actor_count, 0);
	assert_let_go(fixture);
}

static void test_a_host_that_has_no_terminals_today_is_told(void **state)
{
	struct fixture *fixture = *state;
	assert_no_terminal_there(fixture, "mounted noexec", "/bin/agent | login | mounted noexec");
	assert_null(strstr(fixture->err.text, "configuration"));
	assert_int_equal(fixture->err.code, ERROR_UNAVAILABLE);
	assert_no_terminal_there(fixture, NULL, "/bin/agent | login | configuration | elsewhere");
	assert_int_equal(fixture->err.code, ERROR_DENIED);
}

static void test_a_login_of_this_machine_runs_on_no_other(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.capabilities.is_near = false;
	assert_fails(fixture, NULL, "/bin/agent | login | this machine");
	assert_int_equal(fixture->stage.actor_count, 0);
}

static void test_without_a_terminal_nothing_is_connected_to(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.capabilities.has_terminals = true;
	fixture->profile = fixture->stage.config.profile.name;
	int before = dup(STDIN_FILENO);
	int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(before >= 0 && none >= 0 && dup2(none, STDIN_FILENO) == STDIN_FILENO);
	fd_close(&none);
	bool is_done = run(fixture, NULL);
	assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
	fd_close(&before);
	assert_false(is_done);
	assert_names(fixture->err.text, "/bin/agent | login | no terminal");
	assert_int_equal(fixture->stage.prepared, 0);
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
		LOGIN_TEST(test_keys_go_there_from_its_start_to_its_exit),
		LOGIN_TEST(test_a_held_terminal_is_given_back_and_that_is_told),
		LOGIN_TEST(test_a_sandbox_that_is_refused_is_told),
		LOGIN_TEST(test_a_sandbox_that_fails_is_told),
		LOGIN_TEST(test_what_an_agent_elsewhere_has_chosen_does_not_run_here),
		LOGIN_TEST(test_a_host_that_has_no_terminals_today_is_told),
		LOGIN_TEST(test_a_login_of_this_machine_runs_on_no_other),
		LOGIN_TEST(test_without_a_terminal_nothing_is_connected_to),
		LOGIN_TEST(test_a_process_that_cannot_be_asked_for_is_told),
		LOGIN_TEST(test_a_process_that_does_not_start_is_told),
		LOGIN_TEST(test_a_process_that_is_lost_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
