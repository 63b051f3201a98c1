/* SPDX-License-Identifier: MIT */
#include "base/tree.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

enum { DEADLINE_MS = 60000, BOMB_MAX = 1500 };

/* Shared with the children: how many are in place, and how many were forked in all. */
static atomic_int *placed;
static atomic_int *forked;

static void wait_placed(int count)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (atomic_load(placed) < count && clock_now_ms() < deadline_ms) {
		usleep(1000);
	}
	assert_true(atomic_load(placed) >= count);
}

static void rest(void) __attribute__((noreturn));
static void rest(void)
{
	atomic_fetch_add(placed, 1);
	for (;;) {
		pause();
	}
}

/* Returns false when no child is left. */
static bool reap(void)
{
	pid_t pid;
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
	}
	return pid == 0;
}

/* Kills until nothing is left; fails if that takes too long. */
static void kill_all(void)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (reap() && clock_now_ms() < deadline_ms) {
		tree_kill(getpid(), NULL, 0);
		for (int i = 0; i < 1000 && reap(); i++) {
			tree_signal_children(SIGKILL, NULL, 0);
		}
	}
	assert_false(reap());
}

static int reset(void **state)
{
	atomic_store(placed, 0);
	atomic_store(forked, 0);
	return 0;
}

static void test_scan_finds_ourselves_and_our_parent(void **state)
{
	struct tree tree = {0};
	struct error err;
	assert_true(tree_scan(&tree, &err));
	const struct tree_process *self = tree_find(&tree, getpid());
	assert_non_null(self);
	assert_int_equal(self->parent, getppid());
	assert_int_equal(self->group, getpgrp());
	assert_int_equal(self->session, getsid(0));
	assert_int_equal(self->state, 'R');
	assert_true(self->start_ticks > 0);
	assert_null(tree_find(&tree, 0));
	for (size_t i = 1; i < tree.count; i++) {
		assert_true(tree.items[i - 1].pid < tree.items[i].pid);
	}
	tree_finish(&tree);
	assert_null(tree_find(&tree, getpid()));
}

static void test_scan_reads_names_with_brackets(void **state)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, "a) Z 1 2 (b");
		rest();
	}
	wait_placed(1);
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	const struct tree_process *child = tree_find(&tree, pid);
	assert_non_null(child);
	assert_int_equal(child->parent, getpid());
	assert_true(child->state == 'S' || child->state == 'R');
	tree_finish(&tree);
	kill_all();
}

static void test_mark_takes_descendants_less_the_spared(void **state)
{
	pid_t spared = fork();
	if (spared == 0) {
		if (fork() == 0) {
			rest();
		}
		rest();
	}
	pid_t child = fork();
	if (child == 0) {
		if (fork() == 0) {
			setsid();
			if (fork() == 0) {
				rest();
			}
			rest();
		}
		rest();
	}
	pid_t zombie = fork();
	if (zombie == 0) {
		_exit(0);
	}
	wait_placed(5);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	assert_int_equal(tree_mark_below(&tree, getpid(), NULL, 0), 5);
	assert_int_equal(tree_mark_below(&tree, getpid(), &spared, 1), 3);
	assert_int_equal(tree_mark_below(&tree, child, NULL, 0), 2);
	assert_false(tree_find(&tree, child)->is_below);
	tree_finish(&tree);

	tree_kill(getpid(), &spared, 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(kill(spared, 0), 0);
	assert_int_equal(waitpid(spared, NULL, WNOHANG), 0);
	kill_all();
}

static void test_kill_of_nothing_is_nothing(void **state)
{
	assert_int_equal(tree_kill(getpid(), NULL, 0), 0);
}

static void test_kill_ends_stopped_and_deaf_processes(void **state)
{
	for (int i = 0; i < 10; i++) {
		if (fork() == 0) {
			for (int signal = 1; signal < NSIG; signal++) {
				struct sigaction ignore = {.sa_handler = SIG_IGN};
				sigaction(signal, &ignore, NULL);
			}
			if (i % 2 && setsid() < 0) {
				_exit(1);
			}
			atomic_fetch_add(placed, 1);
			raise(SIGSTOP);
			rest();
		}
	}
	wait_placed(10);
	kill_all();
}

/* ---- processes that try to escape ---- */

/* A process that keeps moving on to another one: its child goes on, and it ends. */
static void run_away(bool with_session) __attribute__((noreturn));
static void run_away(bool with_session)
{
	atomic_fetch_add(placed, 1);
	for (;;) {
		if (fork() != 0) {
			_exit(0);
		}
		if (with_session) {
			setsid();
		}
	}
}

static void test_kill_catches_runners(void **state)
{
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			run_away(false);
		}
	}
	wait_placed(4);
	kill_all();
}

static void test_kill_catches_runners_with_sessions(void **state)
{
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			run_away(true);
		}
	}
	wait_placed(4);
	kill_all();
}

/* All processes fork as fast as they can; a counter stops them if the test fails. */
static void explode(bool with_session) __attribute__((noreturn));
static void explode(bool with_session)
{
	while (atomic_fetch_add(forked, 1) < BOMB_MAX) {
		if (fork() == 0 && with_session) {
			setsid();
		}
	}
	rest();
}

static void test_kill_catches_a_fork_bomb(void **state)
{
	for (int with_session = 0; with_session < 2; with_session++) {
		atomic_store(forked, 0);
		if (fork() == 0) {
			explode(with_session);
		}
		long long deadline_ms = clock_now_ms() + DEADLINE_MS;
		while (atomic_load(forked) < 100 && clock_now_ms() < deadline_ms) {
			usleep(100);
		}
		kill_all();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_scan_finds_ourselves_and_our_parent, reset),
		cmocka_unit_test_setup(test_scan_reads_names_with_brackets, reset),
		cmocka_unit_test_setup(test_mark_takes_descendants_less_the_spared, reset),
		cmocka_unit_test_setup(test_kill_of_nothing_is_nothing, reset),
		cmocka_unit_test_setup(test_kill_ends_stopped_and_deaf_processes, reset),
		cmocka_unit_test_setup(test_kill_catches_runners, reset),
		cmocka_unit_test_setup(test_kill_catches_runners_with_sessions, reset),
		cmocka_unit_test_setup(test_kill_catches_a_fork_bomb, reset),
	};
	atomic_int *shared = mmap(NULL, sizeof(*shared) * 2, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
		return 1;
	}
	placed = &shared[0];
	forked = &shared[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
