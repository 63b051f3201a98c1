/* SPDX-License-Identifier: MIT */
#include "base/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/process.h"

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

static void on_late(struct ev_loop *late, ev_timer *timer, int events)
{
	fail_msg("nothing was raised");
}

static void run_until_raised(void)
{
	ev_timer late;
	ev_timer_init(&late, on_late, WAIT_MS / 1000., 0.);
	ev_timer_start(loop, &late);
	while (raised == 0) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &late);
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
		.leaves_daemons = true,
		.timeout_ms = timeout_ms};
	struct error err;
	raised = 0;
	struct capture *capture = capture_start(loop, NULL, &spec, on_done, &raised, &err);
	if (!capture) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(raised, 0);
	return capture;
}

static int clean(void **state)
{
	free(out);
	free(complaint);
	out = NULL;
	complaint = NULL;
	return 0;
}

static void run(const char *script)
{
	clean(NULL);
	start("sh", script, WAIT_MS);
	run_until_raised();
}

/* A pipe whose end of file shows that no process holds the name any more. */
struct witness {
	char folder[32], path[64];
	int fd;
};

static void witness_open(struct witness *witness)
{
	snprintf(witness->folder, sizeof(witness->folder), "/tmp/detached-XXXXXX");
	assert_non_null(mkdtemp(witness->folder));
	snprintf(witness->path, sizeof(witness->path), "%s/fifo", witness->folder);
	assert_int_equal(mkfifo(witness->path, 0600), 0);
	witness->fd = open(witness->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(witness->fd >= 0);
}

static void witness_close(struct witness *witness)
{
	close(witness->fd);
	unlink(witness->path);
	rmdir(witness->folder);
}

/* The first line that was written, as a number. */
static long witness_number(struct witness *witness)
{
	char text[64] = "";
	size_t len = 0;
	while (!strchr(text, '\n')) {
		struct pollfd ready = {.fd = witness->fd, .events = POLLIN};
		assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
		ssize_t count = read(witness->fd, text + len, sizeof(text) - 1 - len);
		assert_true(count > 0);
		len += (size_t)count;
	}
	return strtol(text, NULL, 10);
}

static void witness_expect_gone(struct witness *witness)
{
	char text[64];
	struct pollfd ready = {.fd = witness->fd, .events = POLLIN};
	assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
	assert_int_equal(read(witness->fd, text, sizeof(text)), 0);
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

static void test_output_and_status_are_told_apart(void **state)
{
	run("read line; echo \"out:$line\"; echo err >&2; exit 3");
	assert_string_equal(out, "out:\n"); // nothing to read
	assert_string_equal(complaint, "err\n");
	assert_int_equal(status.code, 3);
	run("kill -9 $$");
	assert_int_equal(status.signal, SIGKILL);
}

static void test_it_reads_its_input(void **state)
{
	input = "one\ntwo";
	run("cat; ls /proc/self/fd | wc -l");
	assert_string_equal(out, "one\ntwo4\n"); // 0, 1, 2 and that of ls itself
	input = NULL;
}

static void test_it_gets_no_descriptor_of_ours(void **state)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);  // on purpose not CLOEXEC
	run("ls /proc/self/fd | wc -l"); // 0, 1, 2 and that of ls itself
	assert_string_equal(out, "4\n");
	close(fds[0]);
	close(fds[1]);
}

static void test_more_output_than_fits_is_an_error(void **state)
{
	run("printf %1001s x; exec sleep 600");
	assert_null(out);
	assert_int_equal(failure.code, ERROR_LIMIT);
}

static void test_a_daemon_goes_on_and_holds_nothing_up(void **state)
{
	struct witness witness;
	char script[256];
	int is_subreaper = 0;
	witness_open(&witness);
	snprintf(script, sizeof(script),
		"setsid sh -c 'exec 3>%s; echo $$ >&3; exec sleep 600' & echo name", witness.path);
	run(script);
	assert_string_equal(out, "name\n");
	pid_t daemon = (pid_t)witness_number(&witness);
	assert_int_equal(kill(daemon, 0), 0);
	assert_int_equal(kill(daemon, SIGKILL), 0);
	witness_expect_gone(&witness);
	witness_close(&witness);
	assert_int_equal(prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0), 0);
	assert_int_equal(is_subreaper, 1); // as before
}

/* The broker cannot wait for an end of its output, because there is none. */
static void test_a_daemon_that_complains_for_ever_holds_nothing_up(void **state)
{
	run("setsid yes >&2 & echo name");
	assert_string_equal(out, "name\n");
	assert_null(strchr(complaint, 'n')); // only a part of stderr is kept
}

static void test_a_program_that_does_not_end_has_a_deadline(void **state)
{
	struct witness witness;
	char script[256];
	witness_open(&witness);
	snprintf(script, sizeof(script), "exec 3>%s; echo $$ >&3; sleep 600", witness.path);
	start("sh", script, 300);
	run_until_raised();
	assert_int_equal(failure.code, ERROR_TIMEOUT);
	(void)witness_number(&witness);
	witness_expect_gone(&witness); // and everything that it has started
	witness_close(&witness);
}

static void test_a_program_that_is_missing_is_told(void **state)
{
	start("no-such-program", "", WAIT_MS);
	run_until_raised();
	assert_int_equal(failure.code, ERROR_NOT_FOUND);
}

static void test_cancelled_it_is_killed_silently(void **state)
{
	struct witness witness;
	char script[256];
	witness_open(&witness);
	snprintf(script, sizeof(script), "exec 3>%s; echo $$ >&3; sleep 600", witness.path);
	struct capture *capture = start("sh", script, WAIT_MS);
	(void)witness_number(&witness);
	capture_cancel(capture);
	capture_cancel(NULL);
	witness_expect_gone(&witness);
	witness_close(&witness);
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(raised, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_output_and_status_are_told_apart),
		TEST(test_it_reads_its_input),
		TEST(test_it_gets_no_descriptor_of_ours),
		TEST(test_more_output_than_fits_is_an_error),
		TEST(test_a_daemon_goes_on_and_holds_nothing_up),
		TEST(test_a_daemon_that_complains_for_ever_holds_nothing_up),
		TEST(test_a_program_that_does_not_end_has_a_deadline),
		TEST(test_a_program_that_is_missing_is_told),
		TEST(test_cancelled_it_is_killed_silently),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
