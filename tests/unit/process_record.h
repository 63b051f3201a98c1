/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_PROCESS_RECORD_H
#define TESTS_UNIT_PROCESS_RECORD_H

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "base/tree.h"

/* Processes started by a test, and what was raised about them. For one .c file. */
enum { DEADLINE_MS = 60000 };

/* One for all tests, as a program has it. */
static struct spawner *spawner;
static struct ev_loop *loop;

/*
 * What was raised, in order: s(tarted), f(ailed), x (exited), e(mptied), z (frozen), t(hawed),
 * l(imit).
 */
struct record {
	char events[16];
	struct process *process;
	struct process_status status;
	struct error err;
	pid_t pid;
	bool destroy_at_start;
	bool destroy_at_exit;
	bool is_by_signals; // frozen so
};

static inline void note(struct record *record, char event)
{
	size_t len = strlen(record->events);
	assert_true(len + 1 < sizeof(record->events));
	record->events[len] = event;
}

static inline void on_started(void *data, pid_t pid)
{
	struct record *record = data;
	note(record, 's');
	record->pid = pid;
	assert_int_equal(process_pid(record->process), pid);
	if (record->destroy_at_start) {
		process_destroy(record->process);
		record->process = NULL;
	}
}

static inline void on_failed(void *data, const struct error *err)
{
	struct record *record = data;
	note(record, 'f');
	record->err = *err;
}

static inline void on_exited(void *data, struct process_status status)
{
	struct record *record = data;
	note(record, 'x');
	record->status = status;
	assert_int_equal(process_pid(record->process), 0);
	if (record->destroy_at_exit) {
		process_destroy(record->process);
		record->process = NULL;
	}
}

static inline void on_emptied(void *data)
{
	note(data, 'e');
}

static inline void on_frozen(void *data, const char *by_signals, const struct error *err)
{
	struct record *record = data;
	note(record, 'z');
	record->is_by_signals = by_signals != NULL;
	if (err) {
		record->err = *err;
	}
}

static inline void on_thawed(void *data)
{
	note(data, 't');
}

static inline void on_limit(void *data, enum limit_kind limit)
{
	note(data, 'l');
	assert_int_equal(limit, LIMIT_PROCESSES);
}

static const struct process_listener listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_frozen = on_frozen,
	.on_thawed = on_thawed,
	.on_limit = on_limit,
};

static inline void on_tick(struct ev_loop *ticking_loop, ev_timer *timer, int events)
{
}

/* Turns the loop until the record's events are those, or for too long. */
static inline void run_until(const struct record *record, const char *events)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.01, 0.01);
	ev_timer_start(loop, &tick);
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (strcmp(record->events, events) != 0 && clock_now_ms() < deadline_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &tick);
	assert_string_equal(record->events, events);
}

static inline void run_for(int ms)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.01, 0.01);
	ev_timer_start(loop, &tick);
	long long deadline_ms = clock_now_ms() + ms;
	while (clock_now_ms() < deadline_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &tick);
}

static const char *const plain_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};

/* Starts argv with its output in a pipe; returns the reading end. */
static inline int start(
	struct record *record, const char *const *argv, const char *const *env, const char *cwd)
{
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	struct process_spec spec = {.argv = argv,
		.env = env ? env : plain_env,
		.cwd = cwd ? cwd : "/",
		.in = -1,
		.out = fds[1],
		.err = -1};
	record->process = process_start(spawner, &spec, &listener, record, &err);
	assert_non_null(record->process);
	assert_string_equal(record->events, ""); // nothing is raised from inside
	fd_close(&fds[1]);
	return fds[0];
}

static inline int start_shell(struct record *record, const char *script)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	return start(record, argv, NULL, NULL);
}

static inline size_t read_all(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t count;
	while (len + 1 < size && (count = read(fd, text + len, size - 1 - len)) > 0) {
		len += (size_t)count;
	}
	text[len] = '\0';
	close(fd);
	return len;
}

/* Runs a shell script to its end and returns what it wrote. */
static inline void run_shell(struct record *record, const char *script, char *text, size_t size)
{
	int out = start_shell(record, script);
	run_until(record, "sxe");
	read_all(out, text, size);
	process_destroy(record->process);
}

static inline bool is_alive(pid_t pid)
{
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	const struct tree_process *process = tree_find(&tree, pid);
	bool alive = process && process->state != 'Z' && process->state != 'X';
	tree_finish(&tree);
	return alive;
}

/* Waits for the end of a process that is not ours to wait for. */
static inline void assert_ends(pid_t pid)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (is_alive(pid) && clock_now_ms() < deadline_ms) {
		run_for(5);
	}
	assert_false(is_alive(pid));
}

static inline pid_t read_pid(int fd)
{
	char text[32] = "";
	size_t len = 0;
	while (len + 1 < sizeof(text) && read(fd, text + len, 1) == 1 && text[len] != '\n') {
		len++;
	}
	text[len] = '\0';
	pid_t pid = (pid_t)strtol(text, NULL, 10);
	assert_true(pid > 1);
	return pid;
}

static inline int set_up_loop(void)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	spawner_attach(spawner, loop);
	return 0;
}

/* As a subreaper, we would be the parent of any process that is left. */
static inline int tear_down_loop(void)
{
	spawner_destroy(spawner);
	ev_loop_destroy(loop);
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

/* Runs the tests with a spawner that was forked before anything else. */
static inline int run_with_spawner(const struct CMUnitTest *tests, size_t count,
	CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	struct error err;
	sigset_t all;
	sigset_t before;
	/* A careless parent may leave us signals like this; no process may inherit it. */
	for (int number = 1; number < NSIG; number++) {
		signal(number, SIG_IGN);
	}
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	spawner = spawner_create(&err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (int number = 1; number < NSIG; number++) {
		signal(number, SIG_DFL);
	}
	if (!spawner) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return _cmocka_run_group_tests("processes", tests, count, set_up, tear_down);
}

#endif
