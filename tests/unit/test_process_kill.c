/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/tree.h"
#include "tests/support/campaign.h"
#include "tests/unit/small_broker.h"

/*
 * The processes that are left when broker, spawner and guard are killed, one or two of them at
 * once. The broker is a child of the test, and the test is a subreaper: a process that escapes
 * shows up below the test.
 */
/* This takes about 50 ms, or 400 if the spawner was killed; a busy machine may need longer. */
enum { DEADLINE_MS = 60000, GONE_MS = 60000 };

enum { BROKER = 1, SPAWNER = 2, GUARD = 4 };

static bool is_under_valgrind;

struct family {
	pid_t broker;
	pid_t spawner;
	pid_t guard;
	pid_t process;
	pid_t daemon; // forked twice, a session of its own, deaf to signals
	int told;     // events that the broker reports, one letter each
	int ask;      // a byte asks the broker for another process
};

/* "p123" or "d123": the process or the daemon gives its pid. */
static void read_pid(int fd, struct family *family)
{
	char text[16] = "";
	for (size_t len = 0; len + 1 < sizeof(text); len++) {
		struct pollfd readable = {.fd = fd, .events = POLLIN};
		assert_int_equal(poll(&readable, 1, DEADLINE_MS), 1);
		assert_int_equal(read(fd, text + len, 1), 1);
		if (text[len] == '\n') {
			break;
		}
	}
	pid_t pid = (pid_t)strtol(text + 1, NULL, 10);
	assert_true(pid > 1);
	*(text[0] == 'p' ? &family->process : &family->daemon) = pid;
}

static pid_t parent_of(pid_t pid)
{
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	const struct tree_process *process = tree_find(&tree, pid);
	assert_non_null(process);
	pid_t parent = process->parent;
	tree_finish(&tree);
	return parent;
}

static bool is_alive(pid_t pid)
{
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	const struct tree_process *process = tree_find(&tree, pid);
	bool alive = process && process->state != 'Z' && process->state != 'X';
	tree_finish(&tree);
	return alive;
}

static void expect_told(const struct family *family, const char *events)
{
	char told[16] = "";
	for (size_t len = 0; len < strlen(events); len++) {
		struct pollfd readable = {.fd = family->told, .events = POLLIN};
		assert_int_equal(poll(&readable, 1, DEADLINE_MS), 1);
		if (read(family->told, told + len, 1) != 1) {
			int status = 0;
			waitpid(family->broker, &status, 0);
			fail_msg("told \"%s\", then the broker ended: status %#x", told, status);
		}
	}
	assert_string_equal(told, events);
}

static struct family family_start(bool foreground)
{
	int told[2];
	int ask[2];
	int pids[2];
	struct error err;
	struct family family = {0};
	assert_true(fd_pipe(told, &err) && fd_pipe(ask, &err) && fd_pipe(pids, &err));
	family.broker = fork();
	assert_true(family.broker >= 0);
	if (family.broker == 0) {
		be_broker(told[1], ask[0], pids[1], foreground);
	}
	fd_close(&told[1]);
	fd_close(&ask[0]);
	fd_close(&pids[1]);
	family.told = told[0];
	family.ask = ask[1];
	expect_told(&family, "s");
	read_pid(pids[0], &family);
	read_pid(pids[0], &family);
	fd_close(&pids[0]);
	/* As soon as the shell between them has ended, the daemon is a child of the guard. */
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (parent_of(family.process) != parent_of(family.daemon) &&
		clock_now_ms() < deadline_ms) {
		usleep(5000);
	}
	family.guard = parent_of(family.process);
	family.spawner = parent_of(family.guard);
	assert_int_equal(parent_of(family.daemon), family.guard);
	assert_int_equal(parent_of(family.spawner), family.broker);
	return family;
}

static pid_t member(const struct family *family, int which)
{
	return which == BROKER    ? family->broker
	       : which == SPAWNER ? family->spawner
	                          : family->guard;
}

/* Reaps the children that the test has got; returns false when nothing is left below it. */
static bool something_is_left(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0) {
	}
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	size_t count = tree_mark_below(&tree, getpid(), NULL, 0);
	tree_finish(&tree);
	return count > 0;
}

static void expect_nothing_left(void)
{
	long long deadline_ms = clock_now_ms() + GONE_MS;
	while (something_is_left() && clock_now_ms() < deadline_ms) {
		usleep(5000);
	}
	bool is_left = something_is_left();
	while (is_left && tree_kill(getpid(), NULL, 0) > 0) {
		usleep(1000);
	}
	assert_false(is_left);
}

static void expect_gone(pid_t pid)
{
	long long deadline_ms = clock_now_ms() + GONE_MS;
	while (is_alive(pid) && clock_now_ms() < deadline_ms) {
		usleep(5000);
	}
	assert_false(is_alive(pid));
}

static void expect_tree_gone(const struct family *family)
{
	expect_gone(family->process);
	expect_gone(family->daemon);
}

/* The broker goes on: it gets the event, and can start the next process. */
static void expect_next_start(const struct family *family)
{
	expect_told(family, "ke");
	assert_true(is_alive(family->broker));
	assert_int_equal(write(family->ask, "", 1), 1);
	expect_told(family, "sxe");
}

static void family_finish(struct family *family)
{
	expect_nothing_left();
	fd_close(&family->told);
	fd_close(&family->ask);
}

static void kill_and_look(int first, int second, bool foreground)
{
	struct family family = family_start(foreground);
	kill(member(&family, first), SIGKILL);
	if (second) {
		kill(member(&family, second), SIGKILL);
	}
	if (first != BROKER && second != BROKER) {
		expect_tree_gone(&family);
		/* The next start must not find a spawner that is still dying. */
		expect_gone(member(&family, first));
		expect_gone(second ? member(&family, second) : family.process);
		expect_next_start(&family);
		kill(family.broker, SIGKILL);
	}
	family_finish(&family);
}

static void test_killed_one_or_two_leave_nothing(void **state)
{
	static const int pairs[][2] = {
		{BROKER, 0},
		{SPAWNER, 0},
		{GUARD, 0},
		{BROKER, GUARD},
		{GUARD, BROKER},
		{BROKER, SPAWNER},
		{SPAWNER, BROKER},
		{SPAWNER, GUARD},
		{GUARD, SPAWNER},
	};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		for (int round = 0; round < campaign_count(1, 3); round++) {
			kill_and_look(pairs[i][0], pairs[i][1], false);
			kill_and_look(pairs[i][0], pairs[i][1], true);
		}
	}
}

/* Processes that the process has started can escape then, but it itself cannot. */
static void test_all_three_killed_take_the_process_along(void **state)
{
	struct family family = family_start(false);
	kill(family.broker, SIGSTOP); // so that none of them can do anything
	kill(family.spawner, SIGSTOP);
	kill(family.guard, SIGSTOP);
	kill(family.broker, SIGKILL);
	kill(family.spawner, SIGKILL);
	kill(family.guard, SIGKILL);
	expect_gone(family.process);
	kill(-family.process, SIGKILL);
	kill(-family.daemon, SIGKILL);
	family_finish(&family);
}

static void test_stopped_guard_of_a_killed_broker_leaves_nothing(void **state)
{
	struct family family = family_start(false);
	kill(family.guard, SIGSTOP);
	kill(family.broker, SIGKILL);
	family_finish(&family);
}

static void test_terminal_signals_reach_neither_spawner_nor_guard(void **state)
{
	static const int signals[] = {SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE, SIGUSR1};
	struct family family = family_start(true);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		kill(family.spawner, signals[i]);
		kill(family.guard, signals[i]);
	}
	kill(family.spawner, SIGTERM);
	usleep(50000);
	assert_true(is_alive(family.spawner));
	assert_true(is_alive(family.guard));
	assert_true(is_alive(family.process));
	kill(family.broker, SIGKILL);
	family_finish(&family);
}

static void test_terminated_guard_takes_its_tree_along(void **state)
{
	struct family family = family_start(false);
	kill(family.guard, SIGTERM);
	expect_tree_gone(&family);
	expect_next_start(&family);
	kill(family.broker, SIGKILL);
	family_finish(&family);
}

static void test_names_differ_from_the_brokers(void **state)
{
	if (is_under_valgrind) {
		skip(); // it executes programs in its own way, and has its own command line
	}
	struct family family = family_start(false);
	const pid_t pids[] = {family.spawner, family.guard};
	for (size_t i = 0; i < 2; i++) {
		char path[64];
		char text[4096] = "";
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)pids[i]);
		FILE *file = fopen(path, "re");
		assert_non_null(file);
		assert_non_null(fgets(text, sizeof(text), file));
		fclose(file);
		assert_string_equal(text, "acp-guard\n");
		snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pids[i]);
		file = fopen(path, "re");
		assert_non_null(file);
		size_t len = fread(text, 1, sizeof(text), file);
		fclose(file);
		size_t name_len = strlen("acp-guard");
		assert_true(len > name_len);
		assert_memory_equal(text, "acp-guard", name_len);
		for (size_t k = name_len; k < len; k++) {
			assert_int_equal(text[k], 0); // none of the broker's arguments
		}
	}
	kill(family.broker, SIGKILL);
	family_finish(&family);
}

static void test_foreground_shares_session_and_group(void **state)
{
	struct family family = family_start(true);
	assert_int_equal(getsid(family.process), getsid(0));
	assert_int_equal(getpgid(family.process), getpgrp());
	assert_int_not_equal(getsid(family.daemon), getsid(0));
	kill(family.broker, SIGKILL);
	family_finish(&family);
}

int main(void)
{
	const char *preload = getenv("LD_PRELOAD");
	is_under_valgrind = preload && strstr(preload, "vgpreload");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_one_or_two_leave_nothing),
		cmocka_unit_test(test_all_three_killed_take_the_process_along),
		cmocka_unit_test(test_stopped_guard_of_a_killed_broker_leaves_nothing),
		cmocka_unit_test(test_terminal_signals_reach_neither_spawner_nor_guard),
		cmocka_unit_test(test_terminated_guard_takes_its_tree_along),
		cmocka_unit_test(test_names_differ_from_the_brokers),
		cmocka_unit_test(test_foreground_shares_session_and_group),
	};
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
