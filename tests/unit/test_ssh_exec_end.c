/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "tests/support/ssh/pipe_client.h"
#include "tests/support/ssh/shells_fixture.h"

/* ---- ending ---- */

static bool has_state(pid_t pid, char state)
{
	char path[64], text[1024], part[] = {')', ' ', state, ' ', '\0'};
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	fd_close(&fd);
	text[count > 0 ? count : 0] = '\0';
	return strstr(text, part) || (count <= 0 && state == 'X');
}

/* A zombie counts as ended: somebody else's init reaps it. */
static bool is_gone(pid_t pid)
{
	return has_state(pid, 'Z') || has_state(pid, 'X');
}

static void expect_gone(pid_t pid)
{
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (!is_gone(pid) && clock_now_ms() < deadline_ms) {
		stage_run_for(&stage, 5);
	}
	assert_true(is_gone(pid));
}

static void test_signals_reach_the_group(void **state)
{
	struct heard heard;
	heard_start_shell(&heard, &stage, "sleep 600 & echo $!; wait");
	heard_wait_text(&heard, "\n");
	pid_t child = (pid_t)strtol(heard_text(&heard, 0), NULL, 10);
	exec_signal_group(heard.exec, SIGTERM);
	heard_wait(&heard, "sxe");
	assert_int_equal(heard.status.signal, SIGTERM);
	expect_gone(child);
	heard_finish(&heard);
	heard_start_shell(&heard, &stage,
		"trap 'echo caught; exit 4' INT; echo up; while :; do sleep 0.05; done");
	heard_wait_text(&heard, "up");
	exec_signal_group(heard.exec, SIGINT);
	heard_wait(&heard, "sxe");
	assert_int_equal(heard.status.code, 4);
	heard_finish(&heard);
	heard_start_shell(&heard, &stage, "trap '' TERM INT HUP; echo up; sleep 600; sleep 600");
	heard_wait_text(&heard, "up");
	exec_signal_group(heard.exec, SIGTERM);
	exec_signal_group(heard.exec, SIGKILL);
	heard_wait(&heard, "sxe");
	assert_int_equal(heard.status.signal, SIGKILL);
	heard_finish(&heard);
}

static void test_a_stopped_group_goes_on_and_can_be_killed(void **state)
{
	struct heard heard;
	char script[300], go[200];
	snprintf(go, sizeof(go), "%s/go", folder);
	/*
	 * The script starts no process: a shell that waits for its vfork does not stop before the
	 * vfork is over.
	 */
	snprintf(script, sizeof(script), "echo $$; read -r x <'%s'; echo on; sleep 600", go);
	assert_int_equal(mkfifo(go, 0600), 0);
	heard_start_shell(&heard, &stage, script);
	heard_wait_text(&heard, "\n");
	pid_t pid = (pid_t)strtol(heard_text(&heard, 0), NULL, 10);
	exec_signal_group(heard.exec, SIGSTOP);
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (!has_state(pid, 'T') && clock_now_ms() < deadline_ms) {
		stage_run_for(&stage, 5);
	}
	assert_true(has_state(pid, 'T'));
	int fd = open(go, O_RDWR | O_CLOEXEC);
	assert_int_equal(write(fd, "x\n", 2), 2);
	stage_run_for(&stage, 100);
	assert_null(strstr(heard_text(&heard, 0), "on"));
	exec_signal_group(heard.exec, SIGCONT);
	heard_wait_text(&heard, "on");
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(go), 0);
	exec_signal_group(heard.exec, SIGSTOP);
	exec_kill_tree(heard.exec);
	heard_wait(&heard, "sxe");
	assert_int_equal(heard.status.signal, SIGKILL);
	heard_finish(&heard);
	heard_start_shell(&heard, &stage, "sleep 600");
	heard_wait(&heard, "s");
	exec_signal_group(heard.exec, SIGSTOP);
	exec_signal_group(heard.exec, SIGKILL);
	heard_wait(&heard, "sxe");
	assert_int_equal(heard.status.signal, SIGKILL);
	heard_finish(&heard);
}

static void test_no_signal_is_ignored(void **state)
{
	assert_string_equal(stage_shell(&stage, "grep SigIgn /proc/self/status | cut -f 2"),
		"0000000000000000");
}

/* Double-forked, in a session of its own. */
#define DAEMON "(setsid sh -c 'echo $$; trap \"\" HUP TERM INT; sleep 600; sleep 600' &); "

static void test_the_tree_dies_with_daemons(void **state)
{
	struct heard heard;
	heard_start_shell(&heard, &stage, DAEMON "trap '' TERM; sleep 600; sleep 600");
	heard_wait_text(&heard, "\n");
	pid_t daemon = (pid_t)strtol(heard_text(&heard, 0), NULL, 10);
	exec_kill_tree(heard.exec);
	exec_kill_tree(heard.exec);
	heard_wait(&heard, "sxe");
	assert_int_equal(heard.status.signal, SIGKILL);
	assert_true(is_gone(daemon));
	heard_finish(&heard);
}

static void test_the_exit_does_not_wait_for_daemons(void **state)
{
	struct heard heard;
	heard_start_shell(&heard, &stage, DAEMON "exit 3");
	heard_wait_text(&heard, "\n");
	pid_t daemon = (pid_t)strtol(heard_text(&heard, 0), NULL, 10);
	heard_wait(&heard, "sx");
	assert_int_equal(heard.status.code, 3);
	stage_run_for(&stage, 300);
	assert_string_equal(heard.told, "sx");
	assert_int_equal(kill(daemon, 0), 0);
	assert_false(heard.is_at_end[0]);
	exec_kill_tree(heard.exec);
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	heard_finish(&heard);
}

static void test_a_daemon_that_ends_by_itself_empties(void **state)
{
	struct heard heard;
	heard_start_shell(&heard, &stage, "env -i sleep 0.4 & exit 0");
	heard_wait(&heard, "sx");
	assert_string_equal(heard.told, "sx");
	heard_wait(&heard, "sxe");
	heard_finish(&heard);
}

static bool names_it(const char *pid, const char *part)
{
	char path[64], words[4096];
	snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, words, sizeof(words));
	fd_close(&fd);
	return count > 0 && memmem(words, (size_t)count, part, strlen(part));
}

/* Whether a process has `part` in its arguments. */
static bool somebody_names(const char *part)
{
	bool is_named = false;
	DIR *entries = opendir("/proc");
	assert_non_null(entries);
	for (struct dirent *entry = readdir(entries); entry && !is_named;
		entry = readdir(entries)) {
		is_named = names_it(entry->d_name, part);
	}
	closedir(entries);
	return is_named;
}

static void expect_nobody_names(const char *part)
{
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (somebody_names(part) && clock_now_ms() < deadline_ms) {
		stage_run_for(&stage, 5);
	}
	assert_false(somebody_names(part));
}

static void test_destroying_kills(void **state)
{
	struct heard heard;
	heard_start_shell(&heard, &stage, DAEMON "sleep 600");
	heard_wait_text(&heard, "\n");
	pid_t daemon = (pid_t)strtol(heard_text(&heard, 0), NULL, 10);
	heard_finish(&heard);
	expect_gone(daemon);
	/* A process that has not even started. */
	char script[300], ran[120], go[120];
	snprintf(ran, sizeof(ran), "%s/ran", folder);
	snprintf(go, sizeof(go), "%s/allowed", folder);
	snprintf(script, sizeof(script), "until [ -e '%s' ]; do sleep 0.1; done; touch '%s'", go,
		ran);
	heard_start_shell(&heard, &stage, script);
	heard_finish(&heard);
	assert_string_equal(stage_shell(&stage, "echo works"), "works");
	expect_nobody_names(go);
	assert_int_equal(mkdir(go, 0700), 0);
	stage_run_for(&stage, 500);
	assert_int_equal(access(ran, F_OK), -1);
	assert_int_equal(rmdir(go), 0);
}

static void test_one_that_kills_its_own_group_is_told(void **state)
{
	struct heard heard;
	heard_start_shell(&heard, &stage, "sleep 600 & kill -9 0; sleep 600");
	if (real_stage_is_real()) {
		/* Some clients do not pass on what the server reports about the signal. */
		long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
		while (strlen(heard.told) < 2 && clock_now_ms() < deadline_ms) {
			stage_run_for(&stage, 2);
		}
		assert_true(heard.told[1] == 'l' || heard.status.signal == SIGKILL);
		heard_finish(&heard);
		return;
	}
	heard_wait(&heard, "sxe");
	assert_int_equal(heard.status.signal, SIGKILL);
	heard_finish(&heard);
	pipe_client_options.hides_end = true;
	heard_start_shell(&heard, &stage, "kill -9 0; sleep 600");
	heard_wait(&heard, "sl");
	pipe_client_options.hides_end = false;
	assert_non_null(strstr(heard.err.text, "was killed"));
	heard_finish(&heard);
}

static void test_fifty_run_at_once(void **state)
{
	enum { COUNT = 50 };
	struct heard *all = mem_alloc_zero(COUNT * sizeof(*all));
	char script[64];
	for (int i = 0; i < COUNT; i++) {
		snprintf(script, sizeof(script), "cat; echo %d; exit %d", i, i);
		const char *argv[] = {"sh", "-c", script, NULL};
		heard_start(&all[i], &stage, &(struct exec_spec){.argv = argv, .want_stdin = true});
	}
	for (int i = 0; i < COUNT; i++) {
		heard_wait(&all[i], "s");
		fd_close(&all[i].in);
	}
	for (int i = 0; i < COUNT; i++) {
		heard_wait(&all[i], "sxe");
		heard_wait_output(&all[i]);
		assert_int_equal(all[i].status.code, i);
		assert_int_equal(strtol(heard_text(&all[i], 0), NULL, 10), i);
		heard_finish(&all[i]);
	}
	free(all);
}

/* ---- leftovers ---- */

static size_t count_entries(const char *path)
{
	size_t count = 0;
	DIR *entries = opendir(path);
	assert_non_null(entries);
	while (readdir(entries)) {
		count++;
	}
	closedir(entries);
	return count;
}

/* No descriptor of a process or a connection stays open. */
static void test_nothing_is_left_of_many(void **state)
{
	enum { CONNECTIONS = 3, PROCESSES = 8 };
	size_t before = 0;
	for (int i = 0; i < CONNECTIONS; i++) {
		for (int j = 0; j < PROCESSES; j++) {
			assert_string_equal(stage_shell(&stage, "echo works"), "works");
		}
		size_t in_use = count_entries("/proc/self/fd");
		before = i == 0 ? in_use : before;
		assert_in_range(in_use, before - 4, before + 4); // of channels kept warm
		stage_finish(&stage);
		real_stage_init(&stage);
		stage.request.sh = sh;
		stage_open(&stage);
	}
}

int main(int argc, char **argv)
{
	if (!shells_init(argc, argv)) {
		return 1;
	}
	const struct CMUnitTest tests[] = {
		EACH_SHELL(test_signals_reach_the_group),
		EACH_SHELL(test_a_stopped_group_goes_on_and_can_be_killed),
		EACH_SHELL(test_no_signal_is_ignored),
		EACH_SHELL(test_the_tree_dies_with_daemons),
		EACH_SHELL(test_the_exit_does_not_wait_for_daemons),
		EACH_SHELL(test_a_daemon_that_ends_by_itself_empties),
		EACH_SHELL(test_destroying_kills),
		EACH_SHELL(test_one_that_kills_its_own_group_is_told),
		EACH_SHELL(test_fifty_run_at_once),
		cmocka_unit_test_prestate_setup_teardown(
			test_nothing_is_left_of_many, set_up, tear_down, (void *)shells[0]),
	};
	return shells_finish(shells_run(tests, ARRAY_LENGTH(tests)));
}
