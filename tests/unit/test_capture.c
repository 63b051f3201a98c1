/* SPDX-License-Identifier: MIT */
#include "base/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"

enum { WAIT_MS = 60000 };

static struct spawner *spawner;
static struct ev_loop *loop;

/* What was raised. */
static int raised;
static char *out, *complaint;
static struct process_status status;
static struct error failure;

static void on_done(void *data, const struct capture_result *result, const struct error *err)
{
	raised++;
	assert_ptr_equal(data, &raised);
	assert_int_equal(result == NULL, err != NULL);
	if (result) {
		out = mem_strndup(result->out);
		complaint = mem_strndup(result->err);
		status = result->status;
	} else {
		failure = *err;
	}
}

static void on_tick(struct ev_loop *ticking, ev_timer *timer, int events)
{
}

static void run_until_raised(void)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.05, 0.05);
	ev_timer_start(loop, &tick);
	long long end_ms = clock_now_ms() + WAIT_MS;
	while (raised == 0 && clock_now_ms() < end_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &tick);
	assert_int_equal(raised, 1);
}

static const char *input; // of the next program

static struct capture *start(const char *program, const char *script, long long timeout_ms)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	const char *argv[] = {program, "-c", script, NULL};
	struct capture_spec spec = {.argv = argv,
		.env = env,
		.cwd = "/",
		.in = input,
		.out_max = 1000,
		.err_max = 10,
		.timeout_ms = timeout_ms};
	struct error err;
	raised = 0;
	struct capture *capture = capture_start(loop, spawner, &spec, on_done, &raised, &err);
	assert_non_null(capture);
	assert_int_equal(raised, 0);
	return capture;
}

static void run(const char *script)
{
	start("sh", script, WAIT_MS);
	run_until_raised();
}

static int setup(void **state)
{
	struct error err;
	spawner = spawner_create(&err);
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!spawner || !loop) {
		return -1;
	}
	spawner_attach(spawner, loop);
	return 0;
}

static int teardown(void **state)
{
	spawner_destroy(spawner);
	ev_loop_destroy(loop);
	return 0;
}

static int clean(void **state)
{
	input = NULL;
	free(out);
	free(complaint);
	out = NULL;
	complaint = NULL;
	return 0;
}

static void test_output_and_status_are_told_apart(void **state)
{
	run("read line; echo \"out:$line\"; echo err >&2; exit 3");
	assert_string_equal(out, "out:\n"); // nothing to read
	assert_string_equal(complaint, "err\n");
	assert_int_equal(status.code, 3);
	assert_int_equal(status.signal, 0);
}

static void test_it_reads_its_input_to_the_end(void **state)
{
	char text[200001];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	input = text; // more than a pipe holds
	run("wc -c");
	assert_int_equal(strtol(out, NULL, 10), sizeof(text) - 1);
}

static void test_nobody_needs_to_read_the_input(void **state)
{
	input = "text";
	run("exit 3");
	assert_int_equal(status.code, 3);
}

static void test_all_that_fits_is_there(void **state)
{
	run("printf %1000s x");
	assert_int_equal(strlen(out), 1000);
	assert_int_equal(out[999], 'x');
}

static void test_more_output_than_that_is_an_error(void **state)
{
	run("printf %1001s x; sleep 60");
	assert_null(out);
	assert_int_equal(failure.code, ERROR_LIMIT);
	assert_non_null(strstr(failure.text, "\"sh\""));
}

static void test_of_complaints_the_beginning_is_kept(void **state)
{
	run("echo 123456789012345 >&2; echo more >&2; echo out");
	assert_string_equal(complaint, "1234567890");
	assert_string_equal(out, "out\n");
}

static void test_what_it_leaves_running_is_not_waited_for(void **state)
{
	run("sleep 60 & echo done");
	assert_string_equal(out, "done\n");
	assert_int_equal(status.code, 0);
}

static void test_a_program_that_does_not_end_has_a_deadline(void **state)
{
	start("sh", "sleep 60", 300);
	run_until_raised();
	assert_int_equal(failure.code, ERROR_TIMEOUT);
	assert_non_null(strstr(failure.text, "300 ms"));
}

static void test_a_program_that_is_missing_is_told(void **state)
{
	start("no-such-program", "", WAIT_MS);
	run_until_raised();
	assert_int_equal(failure.code, ERROR_NOT_FOUND);
}

static void test_nothing_is_raised_once_it_is_cancelled(void **state)
{
	struct capture *capture = start("sh", "echo x; sleep 60", WAIT_MS);
	ev_run(loop, EVRUN_NOWAIT);
	capture_cancel(capture);
	capture_cancel(NULL);
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(raised, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_output_and_status_are_told_apart),
		TEST(test_it_reads_its_input_to_the_end),
		TEST(test_nobody_needs_to_read_the_input),
		TEST(test_all_that_fits_is_there),
		TEST(test_more_output_than_that_is_an_error),
		TEST(test_of_complaints_the_beginning_is_kept),
		TEST(test_what_it_leaves_running_is_not_waited_for),
		TEST(test_a_program_that_does_not_end_has_a_deadline),
		TEST(test_a_program_that_is_missing_is_told),
		TEST(test_nothing_is_raised_once_it_is_cancelled),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
