/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "providers/runner/image.h"
#include "tests/unit/runner_fixture.h"

static const char *const plain_env[] = {"PATH=/usr/bin:/bin", NULL};

static void assert_bytes(const struct buf *bytes, const char *expected)
{
	struct span span = buf_span(bytes);
	assert_int_equal(span.len, strlen(expected));
	assert_memory_equal(span.data, expected, span.len);
}

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

static void test_hello_has_the_build_of_the_image(void **state)
{
	struct test_runner *runner = *state;
	struct runner_image image;
	struct span build;
	while (!runner->hello[0]) {
		test_runner_turn(runner);
	}
	assert_true(runner_image_find(RUNNER_MACHINE, &image));
	assert_true(runner_find_line(span_of(runner->hello), "build", &build));
	assert_true(span_is(build, image.build));
	assert_int_equal(build.len, 40);
	assert_true(image.bytes.len < 1U << 20);
}

static void test_process_gets_stdin_and_its_end(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	test_exec_shell(runner, &exec, "cat; echo end >&2; exit 7");
	test_stream_put(&exec.in, SPAN_LITERAL("hello\n"), true);
	const struct runner_event *event = test_exec_await(runner, &exec);
	assert_int_equal(event->number, 7);
	assert_int_equal(event->signal, 0);
	assert_bytes(&exec.out.bytes, "hello\n");
	assert_bytes(&exec.err.bytes, "end\n");
	test_exec_finish(&exec);
}

/* Everything about a command comes back after one message, without a further byte from here. */
static void test_command_takes_one_round_trip(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	while (!runner->hello[0]) {
		test_runner_turn(runner);
	}
	test_exec_shell(runner, &exec, "echo hello; echo trouble >&2; exit 3");
	test_runner_pump(runner);
	runner->is_mute = true;
	assert_int_equal(test_exec_await(runner, &exec)->number, 3);
	assert_true(test_runner_has(runner, RUNNER_STARTED, exec.id));
	assert_bytes(&exec.out.bytes, "hello\n");
	assert_bytes(&exec.err.bytes, "trouble\n");
	runner->is_mute = false;
	test_exec_finish(&exec);
}

static void test_process_gets_its_words_environment_and_folder(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	const char *const argv[] = {"sh", "-c", "printf '<%s>' \"$@\" \"$A\" \"$PWD\"; env | wc -l",
		"sh", "two\nlines", "", NULL};
	const char *const env[] = {"PATH=/usr/bin:/bin", "A=new\nline\xff", NULL};
	test_exec_start(runner, &exec, argv, env, "/usr");
	assert_int_equal(test_exec_await(runner, &exec)->number, 0);
	struct span out = buf_span(&exec.out.bytes);
	assert_true(span_starts_with(out, SPAN_LITERAL("<two\nlines><><new\nline\xff></usr>")));
	test_exec_finish(&exec);
}

static void test_signal_that_ended_it_is_told(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	test_exec_shell(runner, &exec, "kill -s TERM $$");
	assert_int_equal(test_exec_await(runner, &exec)->signal, SIGTERM);
	test_exec_finish(&exec);
	test_exec_shell(runner, &exec, "exit 143");
	const struct runner_event *event = test_exec_await(runner, &exec);
	assert_int_equal(event->signal, 0);
	assert_int_equal(event->number, 143);
	test_exec_finish(&exec);
}

static void test_missing_program_and_folder_are_told(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	const char *const argv[] = {"no-such-program", NULL};
	test_exec_start(runner, &exec, argv, plain_env, "/");
	const struct runner_event *event = test_runner_await(runner, 0, exec.id);
	assert_int_equal(event->kind, RUNNER_FAILED);
	assert_int_equal(event->number, ERROR_NOT_FOUND);
	test_stream_await_end(runner, &exec.out);
	test_exec_finish(&exec);
	test_exec_start(runner, &exec, argv, plain_env, "/no/such/folder");
	event = test_runner_await(runner, 0, exec.id);
	assert_int_equal(event->kind, RUNNER_FAILED);
	assert_string_equal(event->reason, "DIRECTORY_NOT_FOUND");
	test_exec_finish(&exec);
}

/* A message that the runner refuses names streams; bytes on them must not break the link. */
static void test_refused_exec_leaves_the_link_whole(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	const char *const none[] = {NULL};
	test_exec_start(runner, &exec, none, plain_env, "/");
	test_stream_put(&exec.in, SPAN_LITERAL("bytes for nobody"), true);
	assert_int_equal(test_runner_await(runner, 0, exec.id)->kind, RUNNER_FAILED);
	test_stream_await_end(runner, &exec.out);
	assert_true(exec.out.is_reset);
	test_exec_finish(&exec);
	test_exec_shell(runner, &exec, "exit 3");
	assert_int_equal(test_exec_await(runner, &exec)->number, 3);
	test_exec_finish(&exec);
}

static void order(struct test_runner *runner, enum runner_kind kind, uint64_t id)
{
	test_runner_send(runner, &(struct runner_message){.kind = kind, .id = id});
}

static void await_output(struct test_runner *runner, struct test_exec *exec, const char *text)
{
	while (exec->out.bytes.len < strlen(text)) {
		test_runner_turn(runner);
	}
}

static void test_signal_reaches_the_group(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	test_exec_shell(
		runner, &exec, "trap 'echo got; exit 5' INT; echo on; sleep 1000 & wait; wait");
	await_output(runner, &exec, "on\n");
	test_runner_send(runner,
		&(struct runner_message){.kind = RUNNER_SIGNAL, .id = exec.id, .signal = SIGINT});
	assert_int_equal(test_runner_await(runner, RUNNER_EXITED, exec.id)->number, 5);
	order(runner, RUNNER_KILL, exec.id);
	test_exec_await(runner, &exec);
	assert_bytes(&exec.out.bytes, "on\ngot\n");
	test_exec_finish(&exec);
}

static const char daemon_script[] =
	"(setsid sh -c 'trap \"\" HUP TERM; echo $$; exec sleep 1000 >&- 2>&-' &); echo; exec cat";

static pid_t await_daemon(struct test_runner *runner, struct test_exec *exec)
{
	for (;;) {
		struct span out = buf_span(&exec->out.bytes);
		long pid = 0;
		for (size_t i = 0; i < out.len; i++) {
			bool is_digit = out.data[i] >= '0' && out.data[i] <= '9';
			if (pid > 0 && !is_digit) {
				assert_true(test_runner_is_there((pid_t)pid));
				return (pid_t)pid;
			}
			pid = is_digit ? pid * 10 + (out.data[i] - '0') : 0;
		}
		test_runner_turn(runner);
	}
}

static void test_killed_tree_has_no_daemon_left(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	test_exec_shell(runner, &exec, daemon_script);
	pid_t daemon = await_daemon(runner, &exec);
	order(runner, RUNNER_KILL, exec.id);
	assert_int_equal(test_exec_await(runner, &exec)->signal, SIGKILL);
	assert_false(test_runner_is_there(daemon));
	test_exec_finish(&exec);
}

static void test_released_process_is_killed_in_silence(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	test_exec_shell(runner, &exec, daemon_script);
	pid_t daemon = await_daemon(runner, &exec);
	order(runner, RUNNER_RELEASE, exec.id);
	test_stream_await_end(runner, &exec.out);
	test_runner_await_gone(daemon);
	assert_false(test_runner_has(runner, RUNNER_EXITED, exec.id));
	test_exec_finish(&exec);
}

/* A broker that leaves must know by then whether its order has arrived. */
static void test_release_is_acknowledged_at_once(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	test_exec_shell(runner, &exec, "exec sleep 1000");
	test_runner_await(runner, RUNNER_STARTED, exec.id);
	order(runner, RUNNER_RELEASE, exec.id);
	uint64_t end = mux_messages_end(runner->mux);
	assert_false(mux_has_arrived(runner->mux, end));
	for (int i = 0; i < 2; i++) { // the second answer comes after the acknowledgement
		runner->status[0] = '\0';
		mux_status(runner->mux, (struct span){0});
		while (!runner->status[0]) {
			test_runner_turn(runner);
		}
	}
	assert_true(mux_has_arrived(runner->mux, end));
	test_exec_finish(&exec);
}

static void test_frozen_process_stands_still(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	test_exec_shell(runner, &exec, "while read -r line; do echo \"$line\"; done");
	test_stream_put(&exec.in, SPAN_LITERAL("1\n"), false);
	await_output(runner, &exec, "1\n");
	order(runner, RUNNER_FREEZE, exec.id);
	assert_int_equal(test_runner_await(runner, RUNNER_FROZEN, exec.id)->number, 0);
	test_stream_put(&exec.in, SPAN_LITERAL("2\n"), true);
	struct test_exec other;
	test_exec_shell(runner, &other, "exit 0");
	test_exec_await(runner, &other);
	test_exec_finish(&other);
	assert_int_equal(exec.out.bytes.len, 2);
	order(runner, RUNNER_THAW, exec.id);
	test_runner_await(runner, RUNNER_THAWED, exec.id);
	test_exec_await(runner, &exec);
	assert_bytes(&exec.out.bytes, "1\n2\n");
	test_exec_finish(&exec);
}

/* ---- streams ---- */

static void test_process_notices_that_nobody_reads_it(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	test_exec_shell(runner, &exec, "yes; echo over >&2; cat");
	await_output(runner, &exec, "y\n");
	mux_stream_close(exec.out.stream);
	exec.out.stream = NULL;
	exec.out.is_over = true;
	while (exec.err.bytes.len < 5) {
		test_runner_turn(runner);
	}
	test_stream_put(&exec.in, SPAN_LITERAL(""), true);
	test_exec_await(runner, &exec);
	test_exec_finish(&exec);
}

static void test_stdin_that_nobody_reads_is_told(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	test_exec_shell(runner, &exec, "exec <&-; echo closed; exec sleep 1000");
	await_output(runner, &exec, "closed\n");
	while (!exec.in.is_reset) {
		test_runner_turn(runner);
	}
	order(runner, RUNNER_KILL, exec.id);
	test_exec_await(runner, &exec);
	test_exec_finish(&exec);
}

static void test_full_stream_blocks_no_other(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec flood;
	struct test_exec exec;
	test_exec_shell(runner, &flood, "exec yes");
	flood.out.is_paused = true;
	while (mux_stream_peek(flood.out.stream).len < MUX_WINDOW_TERMINAL) {
		test_runner_turn(runner);
	}
	for (int i = 0; i < 20; i++) {
		test_exec_shell(runner, &exec, "cat");
		test_stream_put(&exec.in, SPAN_LITERAL("through\n"), true);
		test_exec_await(runner, &exec);
		assert_bytes(&exec.out.bytes, "through\n");
		test_exec_finish(&exec);
	}
	order(runner, RUNNER_RELEASE, flood.id);
	test_exec_finish(&flood);
}

/* More bytes than all pipes and windows hold go in both directions at the same time. */
static void test_large_echo_does_not_stand_still(void **state)
{
	struct test_runner *runner = *state;
	struct test_exec exec;
	enum { SIZE = 8 << 20 };
	char *bytes = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++) {
		bytes[i] = (char)(i * 2654435761U >> 24);
	}
	test_exec_shell(runner, &exec, "exec cat");
	test_stream_put(&exec.in, (struct span){bytes, SIZE}, true);
	assert_int_equal(test_exec_await(runner, &exec)->number, 0);
	assert_int_equal(exec.out.bytes.len, SIZE);
	assert_memory_equal(buf_span(&exec.out.bytes).data, bytes, SIZE);
	free(bytes);
	test_exec_finish(&exec);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_hello_has_the_build_of_the_image, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_process_gets_stdin_and_its_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_command_takes_one_round_trip, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_process_gets_its_words_environment_and_folder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_signal_that_ended_it_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_missing_program_and_folder_are_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_refused_exec_leaves_the_link_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_signal_reaches_the_group, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_release_is_acknowledged_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_killed_tree_has_no_daemon_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_released_process_is_killed_in_silence, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_frozen_process_stands_still, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_process_notices_that_nobody_reads_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_stdin_that_nobody_reads_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_full_stream_blocks_no_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_large_echo_does_not_stand_still, set_up, tear_down),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
