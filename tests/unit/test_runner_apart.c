/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/facts.h"
#include "tests/unit/runner_fixture.h"

/* Runs whose channel is lost, and for which another channel takes its place. */

enum { LINES = 60000, CUTS = 25 };

static const char key[RUNNER_KEY_SIZE] = "\x01\x23\x45\x67\x89\xab\xcd\xef";
static const char key_hex[] = "0123456789abcdef000000000000000000000000000000000000000000000000";

struct scene {
	struct test_runner runner;
	struct test_exec exec;
	char folder[64];
	uint64_t attached; // the number of the last channel
};

static void start_with(struct scene *scene, const char *more)
{
	char hello[256];
	snprintf(hello, sizeof(hello), "key=%s\n%s", key_hex, more);
	test_runner_start_apart(&scene->runner, hello, scene->folder, "one");
}

static bool attach(struct scene *scene)
{
	return test_runner_attach(&scene->runner, scene->folder, "one", key, ++scene->attached);
}

/* The runner leaves a lost channel, and then the process of that channel ends. */
static void cut_and_attach(struct scene *scene)
{
	test_runner_cut(&scene->runner);
	assert_true(attach(scene));
}

static void await_output(struct scene *scene, size_t size)
{
	while (scene->exec.out.bytes.len < size) {
		test_runner_turn(&scene->runner);
	}
}

static pid_t pid_in_hello(const struct test_runner *runner)
{
	struct span pid;
	assert_true(runner_find_line(span_of(runner->hello), "pid", &pid));
	return (pid_t)strtol(pid.data, NULL, 10);
}

static size_t count_sockets(const char *folder)
{
	size_t count = 0;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir));) {
		count += strncmp(entry->d_name, "run.", 4) == 0;
	}
	closedir(dir);
	return count;
}

static void expect_output(const struct scene *scene, const char *text)
{
	struct span bytes = buf_span(&scene->exec.out.bytes);
	assert_int_equal(bytes.len, strlen(text));
	assert_memory_equal(bytes.data, text, bytes.len);
}

/* Tells the runner to end. */
static void end(struct scene *scene)
{
	test_exec_finish(&scene->exec);
	mux_end(scene->runner.mux, (struct span){0});
	while (!scene->runner.end[0]) {
		test_runner_turn(&scene->runner);
	}
	test_runner_stop(&scene->runner);
	assert_int_equal(count_sockets(scene->folder), 0);
}

/* The runner is gone, with all processes of the run. */
static void expect_end(struct scene *scene, pid_t runner, pid_t process)
{
	test_runner_await_gone(process);
	test_runner_await_gone(runner);
	test_exec_finish(&scene->exec);
	if (scene->runner.mux) {
		test_runner_close(&scene->runner);
	}
	if (scene->runner.pid > 0) {
		(void)test_runner_wait(&scene->runner);
	}
}

static pid_t start_sleeper(struct scene *scene)
{
	test_exec_shell(&scene->runner, &scene->exec, "echo $$; exec sleep 1000");
	await_output(scene, 2);
	return (pid_t)test_runner_await(&scene->runner, RUNNER_STARTED, scene->exec.id)->number;
}

/* ---- the run after a cut ---- */

static void test_what_was_said_meanwhile_is_there_afterwards(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "");
	test_exec_shell(&scene->runner, &scene->exec,
		"echo begun; read -r word; echo got $word; read -r word; echo got $word; exit 7");
	await_output(scene, 6);
	test_runner_cut(&scene->runner);
	test_stream_put(&scene->exec.in, SPAN_LITERAL("one\ntwo\n"), true);
	assert_true(attach(scene));
	const struct runner_event *exited = test_exec_await(&scene->runner, &scene->exec);
	assert_int_equal(exited->number, 7);
	expect_output(scene, "begun\ngot one\ngot two\n");
	end(scene);
}

static void test_an_end_without_a_channel_is_told_by_the_next_one(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "");
	pid_t process = start_sleeper(scene);
	test_runner_cut(&scene->runner);
	kill(process, SIGKILL);
	test_runner_await_gone(process);
	assert_true(attach(scene));
	assert_int_equal(test_exec_await(&scene->runner, &scene->exec)->signal, SIGKILL);
	end(scene);
}

/* Both directions are in use all the time: `cat` must send back what it got. */
static void test_many_cuts_lose_and_double_nothing(void **state)
{
	struct scene *scene = *state;
	struct buf all;
	struct error err;
	buf_init(&all, 1 << 20);
	for (int i = 0; i < LINES; i++) {
		assert_true(buf_append_format(&all, &err, "%d\n", i));
	}
	start_with(scene, "");
	test_exec_shell(&scene->runner, &scene->exec, "exec cat");
	test_stream_put(&scene->exec.in, buf_span(&all), true);
	for (size_t i = 1; i <= CUTS; i++) {
		await_output(scene, i * all.len / (CUTS + 1));
		cut_and_attach(scene);
	}
	assert_int_equal(test_exec_await(&scene->runner, &scene->exec)->number, 0);
	assert_int_equal(scene->exec.out.bytes.len, all.len);
	assert_memory_equal(buf_span(&scene->exec.out.bytes).data, buf_span(&all).data, all.len);
	end(scene);
	buf_finish(&all);
}

/* ---- who may attach ---- */

static void test_a_further_channel_takes_the_place_of_the_one_that_is_there(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "");
	pid_t process = start_sleeper(scene);
	struct test_runner earlier = scene->runner;
	scene->runner.in = scene->runner.out = -1;
	assert_true(attach(scene));
	assert_int_equal(test_runner_wait(&earlier), 0); // its process has ended
	close(earlier.in);
	close(earlier.out);
	test_runner_send(&scene->runner,
		&(struct runner_message){.kind = RUNNER_KILL, .id = scene->exec.id});
	assert_int_equal(test_exec_await(&scene->runner, &scene->exec)->signal, SIGKILL);
	test_runner_await_gone(process);
	end(scene);
}

static void expect_refusal(struct scene *scene, const char other[RUNNER_KEY_SIZE], uint64_t number)
{
	struct test_runner stranger = {.in = -1, .out = -1};
	assert_false(test_runner_attach(&stranger, scene->folder, "one", other, number));
	/* The present channel is unchanged. */
	size_t before = scene->exec.out.bytes.len;
	test_stream_put(&scene->exec.in, SPAN_LITERAL("x\n"), false);
	await_output(scene, before + 2);
}

static void test_whoever_does_not_know_the_key_is_refused(void **state)
{
	static const char other[RUNNER_KEY_SIZE] = "other";
	struct scene *scene = *state;
	start_with(scene, "");
	test_exec_shell(&scene->runner, &scene->exec, "exec cat");
	expect_refusal(scene, other, 1);
	cut_and_attach(scene);
	expect_refusal(scene, key, scene->attached); // a number that was used before
	expect_refusal(scene, key, 0);
	end(scene);
}

static void test_the_key_is_in_no_file_of_proc(void **state)
{
	struct scene *scene = *state;
	char command[256];
	start_with(scene, "");
	pid_t process = start_sleeper(scene);
	snprintf(command, sizeof(command),
		"! cat /proc/%d/cmdline /proc/%d/environ /proc/%d/cmdline /proc/%d/environ | "
		"grep -aq %.16s",
		(int)pid_in_hello(&scene->runner), (int)pid_in_hello(&scene->runner), (int)process,
		(int)process, key_hex);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
	test_runner_cut(&scene->runner);
	assert_true(attach(scene));
	snprintf(command, sizeof(command),
		"! cat /proc/%d/cmdline /proc/%d/environ | grep -aq %.16s", (int)scene->runner.pid,
		(int)scene->runner.pid, key_hex);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
	end(scene);
	test_runner_await_gone(process);
}

/* ---- its end ---- */

static void test_without_a_key_a_run_ends_with_its_channel(void **state)
{
	struct scene *scene = *state;
	test_runner_start_apart(&scene->runner, "", scene->folder, "one");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	test_runner_cut(&scene->runner);
	expect_end(scene, runner, process);
	assert_int_equal(count_sockets(scene->folder), 0);
}

/* Nothing runs there, and the broker has got all messages. */
static void test_a_run_of_nothing_ends_with_its_channel(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "");
	while (!scene->runner.hello[0]) {
		test_runner_turn(&scene->runner);
	}
	pid_t runner = pid_in_hello(&scene->runner);
	test_runner_cut(&scene->runner);
	expect_end(scene, runner, runner);
	assert_int_equal(count_sockets(scene->folder), 0);
}

static void test_a_broker_that_says_so_ends_a_run_that_has_a_key(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	mux_end(scene->runner.mux, (struct span){0});
	while (!scene->runner.end[0]) {
		test_runner_turn(&scene->runner);
	}
	expect_end(scene, runner, process);
	assert_int_equal(count_sockets(scene->folder), 0);
	struct test_runner late = {.in = -1, .out = -1};
	assert_false(test_runner_attach(&late, scene->folder, "one", key, 1));
}

/* The broker was in contact until its end, so it seems that it will not come back. */
static void test_an_orphan_ends_after_its_time(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "grace-ms=3600000\norphan-ms=1\n");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	test_runner_cut(&scene->runner);
	expect_end(scene, runner, process);
}

static void test_a_run_without_a_channel_ends_after_link_grace(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "grace-ms=8000\norphan-ms=3600000\n");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	test_runner_cut(&scene->runner);
	expect_end(scene, runner, process);
}

static void send_grace(struct scene *scene, uint64_t ms, bool is_suspend)
{
	test_runner_send(&scene->runner, &(struct runner_message){.kind = RUNNER_GRACE,
						 .grace = {.ms = ms, .is_suspend = is_suspend}});
	mux_status(scene->runner.mux, (struct span){0}); // the answer shows that it has arrived
	scene->runner.status[0] = '\0';
	while (!scene->runner.status[0]) {
		test_runner_turn(&scene->runner);
	}
}

/* A turn has ended. */
static void test_the_broker_can_shorten_link_grace(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "grace-ms=3600000\norphan-ms=3600000\n");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	send_grace(scene, 500, false);
	test_runner_cut(&scene->runner);
	expect_end(scene, runner, process);
}

/* Its machine was suspended, so it is expected to come back: orphan-ms does not count. */
static void test_an_announced_suspend_is_no_end_of_the_broker(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "grace-ms=3600000\norphan-ms=1\n");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	send_grace(scene, 3600000, true);
	cut_and_attach(scene);
	assert_true(test_runner_is_there(process));
	test_runner_cut(&scene->runner); // it has come back, so this is another end
	expect_end(scene, runner, process);
}

/* What `acp-runner attach` prints for a run that is gone. */
static void expect_gone(struct scene *scene, const char *why)
{
	char line[RUNNER_TEXT_MAX];
	test_runner_ask(&scene->runner, scene->folder, "one", line);
	assert_true(text_names(line, why));
}

static void test_a_run_that_has_ended_leaves_its_reason(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "orphan-ms=1\n");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	test_runner_cut(&scene->runner);
	expect_end(scene, runner, process);
	expect_gone(scene, "gone | runner | ended | no broker");
}

/* Its channel seems to be there, so the runner also says it in END; that may get lost. */
static void test_a_run_whose_broker_is_silent_leaves_its_reason(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "grace-ms=3000\norphan-ms=3600000\n");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	expect_end(scene, runner, process);
	expect_gone(scene, "gone | runner | ended | no byte");
}

static void test_a_runner_that_was_killed_is_told(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	kill(runner, SIGKILL);
	expect_end(scene, runner, process);
	expect_gone(scene, "gone | runner | killed");
	/* A socket from before the start of the system. */
	char path[96];
	snprintf(path, sizeof(path), "%s/run.one", scene->folder);
	const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	expect_gone(scene, "gone | host | restarted");
}

static void test_nothing_is_left_of_a_run_whose_runner_was_killed(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "");
	pid_t process = start_sleeper(scene);
	pid_t runner = pid_in_hello(&scene->runner);
	test_runner_cut(&scene->runner);
	kill(runner, SIGKILL);
	expect_end(scene, runner, process);
	struct test_runner late = {.in = -1, .out = -1};
	assert_false(test_runner_attach(&late, scene->folder, "one", key, 1));
}

/* The carrier's process is no longer needed: somebody may kill it together with its session. */
static void test_a_killed_waiter_ends_nothing(void **state)
{
	struct scene *scene = *state;
	start_with(scene, "");
	pid_t process = start_sleeper(scene);
	kill(scene->runner.pid, SIGKILL);
	(void)test_runner_wait(&scene->runner);
	assert_true(attach(scene));
	assert_true(test_runner_is_there(process));
	end(scene);
	test_runner_await_gone(process);
}

/* ---- */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	snprintf(scene->folder, sizeof(scene->folder), "/tmp/runner-apart-XXXXXX");
	assert_non_null(mkdtemp(scene->folder));
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	nftw(scene->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	free(scene);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_what_was_said_meanwhile_is_there_afterwards),
		TEST(test_an_end_without_a_channel_is_told_by_the_next_one),
		TEST(test_many_cuts_lose_and_double_nothing),
		TEST(test_a_further_channel_takes_the_place_of_the_one_that_is_there),
		TEST(test_whoever_does_not_know_the_key_is_refused),
		TEST(test_the_key_is_in_no_file_of_proc),
		TEST(test_without_a_key_a_run_ends_with_its_channel),
		TEST(test_a_run_of_nothing_ends_with_its_channel),
		TEST(test_a_broker_that_says_so_ends_a_run_that_has_a_key),
		TEST(test_an_orphan_ends_after_its_time),
		TEST(test_a_run_without_a_channel_ends_after_link_grace),
		TEST(test_the_broker_can_shorten_link_grace),
		TEST(test_an_announced_suspend_is_no_end_of_the_broker),
		TEST(test_a_run_that_has_ended_leaves_its_reason),
		TEST(test_a_run_whose_broker_is_silent_leaves_its_reason),
		TEST(test_a_runner_that_was_killed_is_told),
		TEST(test_nothing_is_left_of_a_run_whose_runner_was_killed),
		TEST(test_a_killed_waiter_ends_nothing),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
