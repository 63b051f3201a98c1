/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "tests/unit/pool_fixture.h"

/* Jobs that are stuck, and left to themselves. */

static void run_to_the_end(struct fixture *fixture, struct work *work)
{
	submit(fixture, work);
	ev_run(fixture->loop, 0);
	assert_true(work->ran);
	assert_true(work->done_at > 0);
}

static void leave_stuck(struct fixture *fixture, struct work *stuck, int count)
{
	for (int i = 0; i < count; i++) {
		hold_name(fixture, &stuck[i]);
		pool_leave(fixture->pool, &stuck[i].job);
	}
}

/* One job in each thread. */
static void hold_names(struct fixture *fixture, struct work works[POOL_NAMES_THREADS])
{
	for (int i = 0; i < POOL_NAMES_THREADS; i++) {
		hold_name(fixture, &works[i]);
	}
}

static void test_another_thread_takes_the_place_of_one_whose_job_was_left(void **state)
{
	enum { STUCK = POOL_NAMES_THREADS + POOL_LEFT_MAX - 1 };
	struct fixture *fixture = *state;
	struct work stuck[STUCK];
	leave_stuck(fixture, stuck, STUCK);
	struct work work = work_on(fixture, POOL_LANE_NAMES, NULL);
	run_to_the_end(fixture, &work);
	open_gate(&fixture->gate, STUCK);
	wait_dropped(fixture, STUCK);
	for (int i = 0; i < STUCK; i++) {
		assert_true(stuck[i].is_dropped);
		assert_int_equal(stuck[i].done_at, 0);
	}
}

static void test_what_waits_begins_when_the_job_before_it_was_left(void **state)
{
	struct fixture *fixture = *state;
	struct work stuck[POOL_NAMES_THREADS];
	hold_names(fixture, stuck);
	struct work work = work_on(fixture, POOL_LANE_NAMES, NULL);
	submit(fixture, &work);
	pool_leave(fixture->pool, &stuck[0].job);
	wait_entered(fixture, 1);
	open_gate(&fixture->gate, POOL_NAMES_THREADS);
	wait_dropped(fixture, 1);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->done_count, 2);
}

/* No more threads than these, however many are stuck. */
static void test_with_too_many_stuck_the_next_job_waits_for_one_of_them(void **state)
{
	enum { STUCK = POOL_NAMES_THREADS + POOL_LEFT_MAX };
	struct fixture *fixture = *state;
	struct work stuck[STUCK];
	leave_stuck(fixture, stuck, STUCK);
	struct work work = work_on(fixture, POOL_LANE_NAMES, NULL);
	submit(fixture, &work);
	usleep(20000);
	assert_int_equal(sem_trywait(&fixture->entered), -1);
	open_gate(&fixture->gate, STUCK);
	wait_dropped(fixture, STUCK);
	ev_run(fixture->loop, 0);
	assert_int_equal(work.done_at, 1);
}

static void test_a_job_that_waits_or_has_ended_is_dropped_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct work running[POOL_NAMES_THREADS];
	hold_names(fixture, running);
	struct work waiting = work_on(fixture, POOL_LANE_NAMES, NULL);
	submit(fixture, &waiting);
	pool_leave(fixture->pool, &waiting.job);
	assert_true(waiting.is_dropped);
	open_gate(&fixture->gate, POOL_NAMES_THREADS);
	usleep(20000); // they have ended, and are not yet told
	pool_leave(fixture->pool, &running[0].job);
	wait_dropped(fixture, 2);
	assert_true(running[0].is_dropped);
	ev_run(fixture->loop, 0);
	assert_false(waiting.ran);
	assert_int_equal(running[0].done_at, 0);
	assert_int_equal(fixture->done_count, POOL_NAMES_THREADS - 1);
}

/* One more than others may take the place of: for none of them. */
static void test_destroy_does_not_wait_for_jobs_that_were_left(void **state)
{
	enum { STUCK = POOL_LEFT_MAX + 1 };
	struct fixture *fixture = *state;
	struct work works[STUCK];
	for (int i = 0; i < STUCK; i++) {
		hold_name(fixture, &works[i]);
		pool_leave(fixture->pool, &works[i].job);
	}
	pool_destroy(fixture->pool);
	fixture->pool = NULL;
	ev_run(fixture->loop, 0);
	open_gate(&fixture->gate, STUCK);
	wait_dropped(fixture, STUCK);
	assert_int_equal(fixture->done_count, 0);
}

/* Threads of pools, by their names; a sanitizer has threads of its own. -1: cannot be told. */
static int count_pool_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	if (!tasks) {
		return -1;
	}
	int count = 0;
	for (struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
		char path[sizeof("/proc/self/task//comm") + sizeof(task->d_name)];
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		char name[16] = "";
		FILE *file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file)) {
			count += strncmp(name, "pool-", strlen("pool-")) == 0;
		}
		if (file) {
			fclose(file);
		}
	}
	closedir(tasks);
	return count;
}

/*
 * Gives the threads that nobody joins the time to end: what checks memory would find theirs.
 */
static int tear_down_alone(void **state)
{
	enum { END_MS = 60000 };
	tear_down(state);
	long long deadline_ms = clock_now_ms() + END_MS;
	while (count_pool_threads() != 0 && clock_now_ms() < deadline_ms) {
		usleep(1000);
	}
	return count_pool_threads() == 0 ? 0 : -1;
}

int main(void)
{
	alarm(600); // a pool that hangs ends here
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_another_thread_takes_the_place_of_one_whose_job_was_left, set_up,
			tear_down_alone),
		cmocka_unit_test_setup_teardown(
			test_what_waits_begins_when_the_job_before_it_was_left, set_up,
			tear_down_alone),
		cmocka_unit_test_setup_teardown(
			test_with_too_many_stuck_the_next_job_waits_for_one_of_them, set_up,
			tear_down_alone),
		cmocka_unit_test_setup_teardown(
			test_a_job_that_waits_or_has_ended_is_dropped_at_once, set_up,
			tear_down_alone),
		cmocka_unit_test_setup_teardown(test_destroy_does_not_wait_for_jobs_that_were_left,
			set_up, tear_down_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
