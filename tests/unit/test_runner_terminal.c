/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/runner_fixture.h"

/* Processes with a terminal of their own. */

static const char end_of_text[] = "\x03";     // Ctrl-C
static const char end_of_transfer[] = "\x04"; // Ctrl-D

static int set_up(void **state)
{
	struct test_runner *runner = calloc(1, sizeof(*runner));
	test_runner_start(runner, "");
	*state = runner;
	return 0;
}

static int tear_down(void **state)
{
	struct test_runner *runner = *state;
	if (runner->mux) {
		test_runner_stop(runner);
	}
	free(runner);
	return 0;
}

/* A message without streams. */
static struct runner_message prepare(
	struct test_runner *runner, struct test_exec *exec, const char *const *argv)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	*exec = (struct test_exec){.id = ++runner->last_id};
	return (struct runner_message){.kind = RUNNER_EXEC,
		.id = exec->id,
		.exec = {.argv = {.list = argv},
			.env = {.list = env},
			.cwd = SPAN_LITERAL("/"),
			.has_terminal = 1,
			.size = {.rows = 24, .columns = 80}}};
}

static void open_streams(
	struct test_runner *runner, struct test_exec *exec, struct runner_message *message)
{
	message->exec.in = test_stream_open(runner, &exec->in, MUX_OUT, MUX_BULK, MUX_WINDOW_INPUT);
	message->exec.out =
		test_stream_open(runner, &exec->out, MUX_IN, MUX_BULK, MUX_WINDOW_TERMINAL);
}

static void begin(struct test_runner *runner, struct test_exec *exec, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct runner_message message = prepare(runner, exec, argv);
	open_streams(runner, exec, &message);
	test_runner_send(runner, &message);
}

static bool has_shown(const struct test_exec *exec, const char *text)
{
	struct span shown = buf_span(&exec->out.bytes);
	return shown.len > 0 && memmem(shown.data, shown.len, text, strlen(text));
}

static void await_shown(struct test_runner *runner, struct test_exec *exec, const char *text)
{
	while (!has_shown(exec, text)) {
		assert_false(exec->out.is_over || exec->out.is_reset);
		test_runner_turn(runner);
	}
}

static void type(struct test_runner *runner, struct test_exec *exec, const char *keys)
{
	test_stream_put(&exec->in, span_of(keys), false);
	test_runner_pump(runner);
}

static const struct runner_event *await_exit(struct test_runner *runner, struct test_exec *exec)
{
	test_stream_await_end(runner, &exec->out);
	assert_true(exec->out.is_over);
	test_runner_await(runner, RUNNER_EMPTIED, exec->id);
	return test_runner_await(runner, RUNNER_EXITED, exec->id);
}

static void test_all_three_are_one_terminal_that_controls_the_process(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	begin(runner, &exec,
		"test -t 0 && test -t 1 && test -t 2 && echo three >/dev/tty; stty size >&2; exit "
		"7");
	const struct runner_event *event = await_exit(runner, &exec);
	assert_int_equal(event->number, 7);
	assert_int_equal(event->signal, 0);
	assert_true(has_shown(&exec, "three\r\n"));
	assert_true(has_shown(&exec, "24 80\r\n"));
	test_exec_finish(&exec);
}

static void test_keys_reach_it_and_lines_end(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	begin(runner, &exec, "read line; echo \"got $line\"; cat; echo end");
	type(runner, &exec, "a word\n");
	await_shown(runner, &exec, "got a word\r\n");
	type(runner, &exec, end_of_transfer);
	assert_int_equal(await_exit(runner, &exec)->number, 0);
	assert_true(has_shown(&exec, "end\r\n"));
	test_exec_finish(&exec);
}

static void test_ctrl_c_is_a_signal_there(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	begin(runner, &exec, "trap 'exit 9' INT; echo ready; while :; do sleep 0.1; done");
	await_shown(runner, &exec, "ready");
	type(runner, &exec, end_of_text);
	assert_int_equal(await_exit(runner, &exec)->number, 9);
	test_exec_finish(&exec);
	begin(runner, &exec, "echo ready; exec sleep 1000");
	await_shown(runner, &exec, "ready");
	type(runner, &exec, end_of_text);
	assert_int_equal(await_exit(runner, &exec)->signal, SIGINT);
	test_exec_finish(&exec);
}

static void test_a_new_size_is_told(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	begin(runner, &exec,
		"trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.1; done");
	await_shown(runner, &exec, "ready");
	struct runner_message message = {
		.kind = RUNNER_RESIZE, .id = exec.id, .resize = {.rows = 65536, .columns = 1}};
	test_runner_send(runner, &message); // refused
	message.resize = (struct runner_size){.rows = 50, .columns = 132};
	test_runner_send(runner, &message);
	assert_int_equal(await_exit(runner, &exec)->number, 0);
	assert_true(has_shown(&exec, "50 132\r\n"));
	test_exec_finish(&exec);
}

/* What it leaves behind keeps the terminal open. */
static void test_its_screen_ends_with_its_tree(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	begin(runner, &exec, "trap '' HUP; sleep 1000 & echo last; exit 3");
	assert_int_equal(test_runner_await(runner, RUNNER_EXITED, exec.id)->number, 3);
	assert_false(exec.out.is_over || exec.out.is_reset);
	test_runner_send(runner, &(struct runner_message){.kind = RUNNER_KILL, .id = exec.id});
	test_stream_await_end(runner, &exec.out);
	assert_true(exec.out.is_over && has_shown(&exec, "last\r\n"));
	test_runner_await(runner, RUNNER_EMPTIED, exec.id);
	test_exec_finish(&exec);
}

/* More than all buffers hold: nothing is lost, and nothing comes after its end. */
static void test_a_long_output_arrives_whole(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	begin(runner, &exec, "stty -opost; head -c 3000000 /dev/zero; echo end");
	await_exit(runner, &exec);
	assert_int_equal(exec.out.bytes.len, 3000000 + strlen("end\n"));
	test_exec_finish(&exec);
}

static void test_release_ends_it(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	begin(runner, &exec, "echo ready; exec sleep 1000");
	await_shown(runner, &exec, "ready");
	test_runner_send(runner, &(struct runner_message){.kind = RUNNER_RELEASE, .id = exec.id});
	test_stream_await_end(runner, &exec.out);
	assert_true(exec.out.is_reset);
	test_exec_finish(&exec);
}

static void assert_refused(struct test_runner *runner, struct test_exec *exec)
{
	const struct runner_event *event = test_runner_await(runner, 0, exec->id);
	assert_int_equal(event->kind, RUNNER_FAILED);
	assert_int_equal(event->number, ERROR_CONFIG);
	test_exec_finish(exec);
}

static void test_a_message_that_makes_no_sense_is_refused(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	const char *const argv[] = {"true", NULL};
	struct runner_message message = prepare(runner, &exec, argv); // no streams
	test_runner_send(runner, &message);
	assert_refused(runner, &exec);
	message = prepare(runner, &exec, argv);
	open_streams(runner, &exec, &message);
	message.exec.err =
		test_stream_open(runner, &exec.err, MUX_IN, MUX_BULK, MUX_WINDOW_TERMINAL);
	test_runner_send(runner, &message);
	assert_refused(runner, &exec);
	message = prepare(runner, &exec, argv);
	open_streams(runner, &exec, &message);
	message.exec.size.columns = 65536;
	test_runner_send(runner, &message);
	assert_refused(runner, &exec);
	begin(runner, &exec, "exit 5"); // the link is whole
	assert_int_equal(await_exit(runner, &exec)->number, 5);
	test_exec_finish(&exec);
	message = (struct runner_message){.kind = RUNNER_RESIZE, .id = 999};
	test_runner_send(runner, &message); // of nobody
	test_exec_shell(runner, &exec, "true");
	message.id = exec.id;
	test_runner_send(runner, &message); // of a process without a terminal
	assert_int_equal(test_exec_await(runner, &exec)->number, 0);
	test_exec_finish(&exec);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
#define TERMINAL_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		TERMINAL_TEST(test_all_three_are_one_terminal_that_controls_the_process),
		TERMINAL_TEST(test_keys_reach_it_and_lines_end),
		TERMINAL_TEST(test_ctrl_c_is_a_signal_there),
		TERMINAL_TEST(test_a_new_size_is_told),
		TERMINAL_TEST(test_its_screen_ends_with_its_tree),
		TERMINAL_TEST(test_a_long_output_arrives_whole),
		TERMINAL_TEST(test_release_ends_it),
		TERMINAL_TEST(test_a_message_that_makes_no_sense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
