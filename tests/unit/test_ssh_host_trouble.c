/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/ssh/host_impl.h"
#include "tests/support/ssh/host_fixture.h"
#include "tests/support/ssh/pipe_client.h"

/* Unexpected behaviour of servers and hosts: every exec is told its end exactly once. */
static struct stage stage;

static int set_up(void **state)
{
	pipe_client_options = (struct pipe_client_options){.shell = "/bin/dash", .home = "/"};
	stage_init(&stage);
	return 0;
}

static int tear_down(void **state)
{
	pipe_clients_freeze(false);
	stage_finish(&stage);
	return 0;
}

static struct ssh_process *youngest(void)
{
	return LIST_ENTRY(stage.host->processes.prev, struct ssh_process, link);
}

static void test_a_command_that_is_refused_fails_once(void **state)
{
	struct heard heard;
	stage.request.warm_channels = 0;
	stage_open(&stage);
	pipe_client_options.refusals = 1;
	pipe_client_options.refusal = ERROR_UNAVAILABLE;
	heard_start_shell(&heard, &stage, "echo up");
	heard_wait(&heard, "f");
	heard_wait_output(&heard);
	assert_int_equal(heard.err.code, ERROR_UNAVAILABLE);
	heard_finish(&heard);
	assert_string_equal(stage_shell(&stage, "echo works"), "works");
}

/* The server has ended a channel, but still counts it for a moment. */
static void test_a_refusal_after_an_end_is_doubted(void **state)
{
	stage.request.warm_channels = 0;
	stage_open(&stage);
	assert_string_equal(stage_shell(&stage, "echo first"), "first");
	pipe_client_options.refusals = 2;
	assert_string_equal(stage_shell(&stage, "echo second"), "second");
	assert_int_equal(pipe_client_options.refusals, 0);
	assert_int_equal(pipe_client_options.connection_count, 1);
}

static void test_one_that_does_not_start_takes_no_input(void **state)
{
	struct heard heard;
	const char *argv[] = {"cat", NULL};
	const char *env[] = {"PATH=/usr/bin:/bin", NULL};
	stage_open(&stage);
	stage.request.channel_timeout_ms = 300;
	stage.host->request.channel_timeout_ms = 300;
	pipe_clients_freeze(true);
	heard_start(&heard, &stage,
		&(struct exec_spec){.argv = argv, .env = env, .cwd = "/", .want_stdin = true});
	heard_wait(&heard, "f");
	assert_string_equal(heard.err.reason, "TIMEOUT_EXCEEDED");
	assert_int_equal(write(heard.in, "late", 4), -1);
	stage_run_for(&stage, 500);
	assert_string_equal(heard.told, "f");
	heard_finish(&heard);
}

/* A server takes its time to refuse a channel; the input is there at once, and ends. */
static void test_input_is_not_lost_with_a_refused_channel(void **state)
{
	struct heard heard;
	const char *argv[] = {"cat", NULL};
	stage.request.warm_channels = 0;
	stage_open(&stage);
	pipe_client_options.open_delay_s = 0.05;
	pipe_client_options.refusals = 2;
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv, .want_stdin = true});
	assert_int_equal(write(heard.in, "kept", 4), 4);
	fd_close(&heard.in);
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_int_equal(pipe_client_options.refusals, 0);
	assert_string_equal(heard_text(&heard, SSH_STREAM_OUT), "kept");
	heard_finish(&heard);
}

/* The host is closed some time after it has failed; bytes that still arrive belong to nobody. */
static void test_output_after_the_end_is_dropped(void **state)
{
	struct heard heard;
	stage_open(&stage);
	heard_start_shell(&heard, &stage, "while :; do echo more; done");
	heard_wait(&heard, "s");
	heard_wait_text(&heard, "more");
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST", "the control has ended");
	ssh_host_enter(stage.host);
	ssh_host_fail(stage.host, &err);
	ssh_host_leave(stage.host);
	assert_true(stage.has_failed);
	assert_string_equal(heard.told, "sl");
	heard_finish(&heard);
	stage_run_for(&stage, 100);
}

static void test_what_a_killed_shell_watched_empties(void **state)
{
	struct heard heard;
	stage_open(&stage);
	heard_start_shell(&heard, &stage, "sleep 600 >/dev/null 2>&1 & exit 3");
	heard_wait(&heard, "sx");
	assert_int_equal(heard.status.code, 3);
	assert_int_equal(kill((pid_t)youngest()->shell, SIGKILL), 0);
	heard_wait(&heard, "sxe");
	heard_finish(&heard);
}

/* A name that consists of quotes gets longer when it is quoted. */
static void test_a_folder_with_a_long_odd_name(void **state)
{
	enum { NAMES = 12, NAME = 240 };
	static char env_entry[8192];
	static const char *const env[] = {env_entry, "XDG_RUNTIME_DIR=", NULL};
	char base[] = "/tmp/ssh-trouble-XXXXXX", line[64];
	assert_non_null(mkdtemp(base));
	snprintf(env_entry, sizeof(env_entry), "TMPDIR=%s", base);
	for (int i = 0; i < NAMES; i++) {
		size_t len = strlen(env_entry);
		env_entry[len] = '/';
		memset(env_entry + len + 1, '\'', NAME);
		assert_int_equal(mkdir(env_entry + strlen("TMPDIR="), 0700), 0);
	}
	pipe_client_options.env = env;
	stage_open(&stage);
	assert_string_equal(stage_shell(&stage, "echo works"), "works");
	assert_true(strlen(stage.host->control.run_folder) > (size_t)NAMES * NAME);
	ssh_host_close(stage.host);
	stage.host = NULL;
	snprintf(line, sizeof(line), "rm -rf %s", base);
	stage_run_for(&stage, 500);
	assert_int_equal(system(line), 0);
}

/* Kills all our shells at the same moment: nobody is left to end their processes. */
static void kill_shells(const char *token)
{
	static const char *const signals[] = {"STOP", "KILL"};
	char line[256];
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++) {
		snprintf(line, sizeof(line),
			"for f in $(grep -lzxs ACP_BROKER_RUN=%s /proc/[0-9]*/environ); do "
			"f=${f%%/*}; kill -%s ${f##*/} 2>/dev/null; done; :",
			token, signals[i]);
		assert_int_equal(system(line), 0);
	}
}

static void wait_removed(const char *path)
{
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (access(path, F_OK) == 0 && clock_now_ms() < deadline_ms) {
		stage_run_for(&stage, 5);
	}
	assert_int_equal(access(path, F_OK), -1);
}

static void expect_swept(const char *sh)
{
	struct heard heard;
	char token[SSH_TOKEN_SIZE], folder[256];
	stage.request.sh = sh;
	stage_open(&stage);
	snprintf(token, sizeof(token), "%s", stage.host->token);
	snprintf(folder, sizeof(folder), "%s", stage.host->control.run_folder);
	heard_start_shell(&heard, &stage, "trap '' HUP TERM; echo up; sleep 600; sleep 600");
	heard_wait(&heard, "s");
	heard_wait_text(&heard, "up");
	kill_shells(token);
	stage_run_until(&stage, &stage.has_failed);
	assert_string_equal(heard.told, "sl");
	heard_finish(&heard);
	stage_finish(&stage);
	assert_true(stage_count_left(token) > 0);
	assert_int_equal(access(folder, F_OK), 0);
	stage_init(&stage);
	stage.request.sh = sh;
	stage_open(&stage);
	stage_expect_none_left(token);
	wait_removed(folder);
	assert_string_equal(stage_shell(&stage, "echo works"), "works");
	snprintf(folder, sizeof(folder), "%s", stage.host->control.run_folder);
	ssh_host_close(stage.host);
	stage.host = NULL;
	wait_removed(folder);
	stage_finish(&stage);
	stage_init(&stage);
}

static void test_a_run_that_nobody_ended_is_ended_by_the_next(void **state)
{
	char base[] = "/tmp/ssh-trouble-XXXXXX", busybox[64], entry[64];
	const char *const env[] = {entry, "XDG_RUNTIME_DIR=", NULL};
	assert_non_null(mkdtemp(base));
	/* A place in which no other test's control looks for leftovers. */
	snprintf(entry, sizeof(entry), "TMPDIR=%s", base);
	pipe_client_options.env = env;
	snprintf(busybox, sizeof(busybox), "%s/sh", base);
	assert_int_equal(symlink("/usr/bin/busybox", busybox), 0);
	expect_swept("/bin/dash");
	expect_swept("/bin/bash");
	expect_swept(busybox);
	pipe_client_options.env = NULL;
	assert_int_equal(unlink(busybox), 0);
	assert_int_equal(rmdir(base), 0);
}

/*
 * The same name leads to another machine, where the processes of a lost connection cannot be ended.
 */
static void test_nothing_is_started_beside_what_cannot_be_ended(void **state)
{
	struct ssh_runs runs;
	ssh_runs_init(&runs, NULL);
	ssh_runs_add(&runs, &(struct ssh_run_end){.place = "here",
				    .folder = "/tmp/acp-broker.0.1.0.1",
				    .node = "else'where",
				    .grace_ms = 60000,
				    .was_lost = true});
	stage.request.runs = &runs;
	stage.request.place = "here";
	stage_start(&stage);
	stage_run_until(&stage, &stage.has_failed);
	assert_string_equal(stage.err.reason, "AGENT_STILL_RUNNING");
	assert_non_null(strstr(stage.err.text, "else'where"));
	stage_finish(&stage);
	stage_init(&stage);
	stage.request.runs = &runs;
	stage.request.place = "elsewhere";
	stage_open(&stage);
	assert_string_equal(stage_shell(&stage, "echo works"), "works");
	ssh_host_close(stage.host);
	stage.host = NULL;
	ssh_runs_finish(&runs);
	assert_true(list_is_empty(&runs.runs));
}

/* Two hosts in one place: one is lost after the other's script was written. */
static void test_what_no_script_has_named_is_not_forgotten(void **state)
{
	struct ssh_runs runs;
	ssh_runs_init(&runs, NULL);
	struct ssh_run_end end = {.place = "here",
		.folder = "/tmp/acp-broker.0.1.0.1",
		.node = "elsewhere",
		.grace_ms = 60000,
		.was_lost = true};
	stage.request.runs = &runs;
	stage.request.place = "here";
	stage_start(&stage);
	while (!stage.host->control.channel) {
		ev_run(stage.loop, EVRUN_ONCE);
	}
	assert_false(stage.host->control.is_ready);
	ssh_runs_add(&runs, &end);
	stage_run_until(&stage, &stage.is_ready);
	assert_false(list_is_empty(&runs.runs));
	stage_finish(&stage);
	stage_init(&stage);
	stage.request.runs = &runs;
	stage.request.place = "here";
	stage_start(&stage);
	stage_run_until(&stage, &stage.has_failed);
	assert_string_equal(stage.err.reason, "AGENT_STILL_RUNNING");
	ssh_runs_finish(&runs);
	stage.request.runs = NULL;
}

#define TROUBLE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		TROUBLE_TEST(test_nothing_is_started_beside_what_cannot_be_ended),
		TROUBLE_TEST(test_what_no_script_has_named_is_not_forgotten),
		TROUBLE_TEST(test_a_command_that_is_refused_fails_once),
		TROUBLE_TEST(test_a_refusal_after_an_end_is_doubted),
		TROUBLE_TEST(test_one_that_does_not_start_takes_no_input),
		TROUBLE_TEST(test_input_is_not_lost_with_a_refused_channel),
		TROUBLE_TEST(test_output_after_the_end_is_dropped),
		TROUBLE_TEST(test_what_a_killed_shell_watched_empties),
		TROUBLE_TEST(test_a_folder_with_a_long_odd_name),
		TROUBLE_TEST(test_a_run_that_nobody_ended_is_ended_by_the_next),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
