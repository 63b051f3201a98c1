/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/runner_fixture.h"

/* However a runner ends, no process that it started is left. */

struct family {
	struct test_runner runner;
	struct test_exec exec;
	pid_t runner_pid; // below the keeper
	pid_t daemon;     // ignores SIGTERM, in a session of its own
};

/* The first number that the text has after `from`. */
static pid_t number_in(struct span text, size_t from)
{
	pid_t number = 0;
	for (size_t i = from; i < text.len; i++) {
		bool is_digit = text.data[i] >= '0' && text.data[i] <= '9';
		if (number > 0 && !is_digit) {
			return number;
		}
		number = is_digit ? number * 10 + (text.data[i] - '0') : 0;
	}
	return 0;
}

static void start_family(struct family *family, const char *hello)
{
	struct test_runner *runner = &family->runner;
	struct span pid;
	test_runner_start(runner, hello);
	test_exec_shell(runner, &family->exec,
		"setsid sh -c 'trap \"\" HUP TERM INT; echo $$; exec sleep 1000 2>&- <&-' & wait");
	while ((family->daemon = number_in(buf_span(&family->exec.out.bytes), 0)) == 0) {
		test_runner_turn(runner);
	}
	assert_true(runner_find_line(span_of(runner->hello), "pid", &pid));
	family->runner_pid = number_in((struct span){pid.data, pid.len + 1}, 0);
	assert_true(family->runner_pid > 0 && family->runner_pid != runner->pid);
	assert_true(test_runner_is_there(family->daemon));
}

/* When the keeper has ended, so have all others. */
static void finish_family(struct family *family)
{
	test_exec_finish(&family->exec);
	if (family->runner.mux) {
		test_runner_close(&family->runner);
	}
	(void)test_runner_wait(&family->runner);
	assert_false(test_runner_is_there(family->daemon));
	assert_false(test_runner_is_there(family->runner_pid));
}

static void test_end_of_the_channel_ends_all(void **state)
{
	struct family family;
	start_family(&family, "");
	test_exec_finish(&family.exec);
	test_runner_stop(&family.runner);
	assert_false(test_runner_is_there(family.daemon));
}

static void test_end_is_answered_when_nothing_is_left(void **state)
{
	struct family family;
	struct span left;
	start_family(&family, "");
	mux_end(family.runner.mux, SPAN_LITERAL("why=test\n"));
	while (!family.runner.end[0]) {
		test_runner_turn(&family.runner);
	}
	assert_false(test_runner_is_there(family.daemon));
	assert_true(runner_find_line(span_of(family.runner.end), "left", &left));
	assert_true(span_is(left, "0"));
	finish_family(&family);
}

static void test_status_is_answered(void **state)
{
	struct family family;
	struct span runs;
	start_family(&family, "");
	mux_status(family.runner.mux, SPAN_LITERAL(""));
	while (!family.runner.status[0]) {
		test_runner_turn(&family.runner);
	}
	assert_true(runner_find_line(span_of(family.runner.status), "runs", &runs));
	assert_true(span_is(runs, "1"));
	finish_family(&family);
}

/* A network that drops everything shows no end of the channel, so the time decides. */
static void test_silence_of_the_broker_ends_all(void **state)
{
	struct family family;
	start_family(&family, "grace-ms=1500\n");
	(void)test_runner_wait(&family.runner);
	assert_false(test_runner_is_there(family.daemon));
	test_exec_finish(&family.exec);
	test_runner_close(&family.runner);
}

static void test_killed_runner_leaves_nothing(void **state)
{
	struct family family;
	start_family(&family, "");
	kill(family.runner_pid, SIGKILL);
	finish_family(&family);
}

static void test_killed_keeper_leaves_nothing(void **state)
{
	struct family family;
	start_family(&family, "");
	kill(family.runner.pid, SIGKILL);
	test_runner_await_gone(family.daemon);
	test_runner_await_gone(family.runner_pid);
	finish_family(&family);
}

static void test_terminated_runner_leaves_nothing(void **state)
{
	struct family family;
	start_family(&family, "");
	kill(family.runner_pid, SIGTERM);
	finish_family(&family);
}

/* The runner's processes belong to the same user, and may stop the runner. */
static void test_stopped_runner_goes_on(void **state)
{
	struct family family;
	struct test_exec exec;
	start_family(&family, "");
	kill(family.runner_pid, SIGSTOP);
	test_exec_shell(&family.runner, &exec, "exit 4");
	assert_int_equal(test_exec_await(&family.runner, &exec)->number, 4);
	test_exec_finish(&exec);
	finish_family(&family);
}

static void test_broken_rule_ends_all(void **state)
{
	static const char bytes[RUNNER_HEADER] = {0, 0, 99};
	struct family family;
	start_family(&family, "");
	assert_int_equal(write(family.runner.out, bytes, sizeof(bytes)), sizeof(bytes));
	(void)test_runner_wait(&family.runner);
	assert_false(test_runner_is_there(family.daemon));
	test_exec_finish(&family.exec);
	test_runner_close(&family.runner);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end_of_the_channel_ends_all),
		cmocka_unit_test(test_end_is_answered_when_nothing_is_left),
		cmocka_unit_test(test_status_is_answered),
		cmocka_unit_test(test_silence_of_the_broker_ends_all),
		cmocka_unit_test(test_killed_runner_leaves_nothing),
		cmocka_unit_test(test_killed_keeper_leaves_nothing),
		cmocka_unit_test(test_terminated_runner_leaves_nothing),
		cmocka_unit_test(test_stopped_runner_goes_on),
		cmocka_unit_test(test_broken_rule_ends_all),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
