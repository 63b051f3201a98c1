/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/ssh/host_impl.h"
#include "tests/support/ssh/host_fixture.h"
#include "tests/support/ssh/pipe_client.h"

/*
 * A host on whose channels nothing may be written to stderr, so that a process's stderr has a
 * separate channel. test_ssh_exec*.c tests what every exec does; this file tests what can go wrong
 * here.
 */
static const size_t mib = 1 << 20;

static struct stage stage;

static int set_up(void **state)
{
	pipe_client_options = (struct pipe_client_options){.shell = "/bin/sh", .home = "/"};
	stage_init(&stage);
	stage.request.stderr_apart = true;
	stage.request.max_connections = 1;
	return 0;
}

static int tear_down(void **state)
{
	char token[SSH_TOKEN_SIZE];
	snprintf(token, sizeof(token), "%s", stage.host->token);
	pipe_clients_freeze(false);
	assert_int_equal(pipe_client_options.stderr_bytes, 0);
	stage_finish(&stage);
	stage_expect_none_left(token);
	return 0;
}

/* The number of entries for processes in the run's folder. */
static size_t count_left_in_folder(void)
{
	size_t count = 0;
	DIR *folder = opendir(stage.host->control.run_folder);
	assert_non_null(folder);
	for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		count += strncmp(entry->d_name, "err.", 4) == 0 ||
		         strncmp(entry->d_name, "job.", 4) == 0;
	}
	closedir(folder);
	return count;
}

static void expect_nothing_left(void)
{
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS; // reported, then removed
	while (count_left_in_folder() > 0 && clock_now_ms() < deadline_ms) {
		stage_run_for(&stage, 20);
	}
	assert_int_equal(count_left_in_folder(), 0);
}

static void expect_works(void)
{
	assert_string_equal(stage_shell(&stage, "echo works; echo err >&2"), "works");
}

static void test_nothing_is_written_to_stderr_and_nothing_left(void **state)
{
	struct heard heard;
	const char *missing[] = {"no-such-command", NULL};
	const char *argv[] = {"cat", NULL};
	stage_open(&stage);
	heard_start_shell(&heard, &stage, "echo out; echo err >&2; exec 2>&-; sleep 0.1; echo end");
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_string_equal(heard_text(&heard, 0), "out\nend\n");
	assert_string_equal(heard_text(&heard, 1), "err\n");
	heard_finish(&heard);
	heard_start(&heard, &stage, &(struct exec_spec){.argv = missing});
	heard_wait(&heard, "f");
	heard_wait_output(&heard);
	assert_int_equal(heard.err.code, ERROR_NOT_FOUND);
	heard_finish(&heard);
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv, .merge_stderr = true});
	heard_wait(&heard, "sxe");
	heard_finish(&heard);
	expect_nothing_left();
}

/* Otherwise another shell would wait for ever to carry a stderr that has ended. */
static void test_a_stderr_that_ends_before_the_start_is_heard_gets_no_second_channel(void **state)
{
	struct heard heard;
	const char *argv[] = {"sh", "-c", "echo err >&2; exec 2>&-; cat", NULL};
	stage_open(&stage);
	pipe_clients_freeze_control(true);
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv, .want_stdin = true});
	struct ssh_process *process =
		LIST_ENTRY(stage.host->processes.prev, struct ssh_process, link);
	stage_run_until(&stage, &heard.is_at_end[1]);
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (process->err_slot && clock_now_ms() < deadline_ms) {
		stage_run_for(&stage, 20);
	}
	assert_null(process->err_slot);
	assert_int_equal(process->state, SSH_PROCESS_STARTING);
	pipe_clients_freeze_control(false);
	fd_close(&heard.in);
	heard_wait(&heard, "sxe");
	assert_string_equal(heard_text(&heard, 1), "err\n");
	heard_finish(&heard);
	expect_nothing_left();
	expect_works();
}

/* 64 MiB of stdout that nobody reads yet, and 3 MiB of stderr; and the other way round. */
static void test_one_stream_does_not_hold_the_other(void **state)
{
	struct heard heard;
	static const char *const scripts[] = {
		"{ head -c 67108864 /dev/zero & } ; head -c 3145728 /dev/zero >&2; wait",
		"{ head -c 67108864 /dev/zero >&2 & } ; head -c 3145728 /dev/zero; wait"};
	const size_t sizes[] = {64 * mib, 3 * mib};
	stage_open(&stage);
	for (int held = 0; held < 2; held++) {
		heard_start_shell(&heard, &stage, scripts[held]);
		ev_io_stop(stage.loop, &heard.io[held]);
		long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
		while (heard.bytes[1 - held].len < 3 * mib && clock_now_ms() < deadline_ms) {
			stage_run_for(&stage, 5);
		}
		assert_int_equal(heard.bytes[1 - held].len, 3 * mib);
		ev_io_start(stage.loop, &heard.io[held]);
		heard_wait(&heard, "sxe");
		heard_wait_output(&heard);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(heard.bytes[i].len, sizes[held == 0 ? i : 1 - i]);
		}
		heard_finish(&heard);
	}
}

static void test_stderr_that_nobody_reads_is_dropped(void **state)
{
	struct heard heard;
	stage_open(&stage);
	heard_start_shell(&heard, &stage, "head -c 4194304 /dev/zero >&2; echo end");
	ev_io_stop(stage.loop, &heard.io[1]);
	fd_close(&heard.fds[1]);
	heard_wait_text(&heard, "end");
	heard_wait(&heard, "sxe");
	heard_finish(&heard);
}

/* ---- channels that cannot be opened ---- */

static void expect_untouched(const char *path)
{
	assert_int_equal(access(path, F_OK), -1);
}

/* The shell of the process may be there first: it starts nothing, and does not wait. */
static void expect_fails_without_the_second(bool for_good)
{
	struct heard heard;
	char path[64], script[128];
	snprintf(path, sizeof(path), "/tmp/ssh-apart-%d", (int)getpid());
	snprintf(script, sizeof(script), "touch %s", path);
	stage_open(&stage);
	size_t left = stage_count_left(stage.host->token);
	pipe_client_options.second_is_refused = for_good;
	pipe_client_options.refusal = for_good ? ERROR_UNAVAILABLE : ERROR_LIMIT;
	pipe_client_options.max_sessions = for_good ? 0 : 2; // the control takes one of them
	stage.host->request.channel_timeout_ms = for_good ? STAGE_DEADLINE_MS : 1000;
	heard_start_shell(&heard, &stage, script);
	heard_wait(&heard, "f");
	stage.host->request.channel_timeout_ms = STAGE_DEADLINE_MS;
	heard_wait_output(&heard);
	heard_finish(&heard);
	pipe_client_options.second_is_refused = false;
	pipe_client_options.max_sessions = 0;
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (stage_count_left(stage.host->token) > left) {
		assert_true(clock_now_ms() < deadline_ms);
		stage_run_for(&stage, 50);
	}
	expect_untouched(path);
	expect_works();
}

static void test_a_second_channel_that_is_refused_for_good(void **state)
{
	stage.request.warm_channels = 0;
	expect_fails_without_the_second(true);
}

static void test_a_second_channel_that_is_never_to_be_had(void **state)
{
	stage.request.warm_channels = 0;
	expect_fails_without_the_second(false);
}

static void test_a_second_channel_that_is_refused_once(void **state)
{
	stage.request.warm_channels = 0;
	stage_open(&stage);
	expect_works();
	pipe_client_options.refusals = 1;
	expect_works();
	assert_int_equal(pipe_client_options.refusals, 0);
}

static void test_no_more_channels_than_are_allowed(void **state)
{
	enum { COUNT = 3 };
	struct heard heard[COUNT];
	stage.request.max_channels = 5;
	stage.request.warm_channels = 4;
	stage_open(&stage);
	for (int i = 0; i < COUNT; i++) {
		heard_start_shell(&heard[i], &stage, "echo up; sleep 600");
	}
	heard_wait(&heard[0], "s");
	heard_wait(&heard[1], "s");
	stage_run_for(&stage, 200);
	assert_string_equal(heard[2].told, "");
	exec_kill_tree(heard[0].exec);
	heard_wait(&heard[2], "s");
	for (int i = 0; i < COUNT; i++) {
		heard_finish(&heard[i]);
	}
	assert_int_equal(pipe_client_options.channel_count, 5);
	assert_int_equal(pipe_client_options.connection_count, 1);
}

static void test_too_few_channels_for_one(void **state)
{
	struct heard heard[2];
	stage.request.max_channels = 4;
	stage_open(&stage);
	heard_start_shell(&heard[0], &stage, "sleep 600");
	heard_wait(&heard[0], "s");
	stage.host->request.channel_timeout_ms = 300;
	heard_start_shell(&heard[1], &stage, "sleep 600");
	heard_wait(&heard[1], "f");
	assert_string_equal(heard[1].err.reason, "RESOURCE_LIMIT_EXCEEDED");
	assert_null(strstr(heard[1].err.text, "MaxSessions"));
	heard_finish(&heard[0]);
	heard_finish(&heard[1]);
}

#define APART_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		APART_TEST(test_nothing_is_written_to_stderr_and_nothing_left),
		APART_TEST(
			test_a_stderr_that_ends_before_the_start_is_heard_gets_no_second_channel),
		APART_TEST(test_one_stream_does_not_hold_the_other),
		APART_TEST(test_stderr_that_nobody_reads_is_dropped),
		APART_TEST(test_a_second_channel_that_is_refused_for_good),
		APART_TEST(test_a_second_channel_that_is_never_to_be_had),
		APART_TEST(test_a_second_channel_that_is_refused_once),
		APART_TEST(test_no_more_channels_than_are_allowed),
		APART_TEST(test_too_few_channels_for_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
