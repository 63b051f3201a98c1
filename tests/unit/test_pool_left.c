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

/* Jobs whose owners have gone, and those of them that are stuck. */

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
		pool_leave(&stuck[i].job);
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
	pool_leave(&stuck[0].job);
	wait_entered(fixture, 1);
	open_gate(&fixture->gate, POOL_NAMES_THREADS);
	wait_dropped(fixture, 1);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->done_count, 2);
}

/* However many are stuck, there are no more threads than these. */
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
	pool_leave(&waiting.job);
	assert_true(waiting.is_dropped);
	open_gate(&fixture->gate, POOL_NAMES_THREADS);
	usleep(20000); // they have ended, and nobody was told yet
	pool_leave(&running[0].job);
	wait_dropped(fixture, 2);
	assert_true(running[0].is_dropped);
	ev_run(fixture->loop, 0);
	assert_false(waiting.ran);
	assert_int_equal(running[0].done_at, 0);
	assert_int_equal(fixture->done_count, POOL_NAMES_THREADS - 1);
}

/* One more than other threads may replace: destroy waits for none of them. */
static void test_destroy_does_not_wait_for_names_that_were_left(void **state)
{
	enum { STUCK = POOL_LEFT_MAX + 1 };
	struct fixture *fixture = *state;
	struct work works[STUCK];
	for (int i = 0; i < STUCK; i++) {
		hold_name(fixture, &works[i]);
		pool_leave(&works[i].job);
	}
	pool_destroy(fixture->pool);
	fixture->pool = NULL;
	ev_run(fixture->loop, 0);
	open_gate(&fixture->gate, STUCK);
	wait_dropped(fixture, STUCK);
	assert_int_equal(fixture->done_count, 0);
}

static void assert_dropped_by_the_loop(const struct fixture *fixture, const struct work *work)
{
	assert_true(work->is_dropped);
	assert_true(pthread_equal(work->dropped_on, fixture->loop_thread));
	assert_int_equal(work->done_at, 0);
	assert_false(pool_has(&work->job));
}

static void test_a_job_that_runs_is_dropped_by_the_loop_once_it_has_ended(void **state)
{
	struct fixture *fixture = *state;
	struct work running = work_on(fixture, POOL_LANE_SYNC, &fixture->gate);
	submit(fixture, &running);
	wait_entered(fixture, 1);
	pool_leave(&running.job);
	assert_false(running.is_dropped);
	open_gate(&fixture->gate, 1);
	ev_run(fixture->loop, 0);
	assert_dropped_by_the_loop(fixture, &running);
}

static void test_a_job_that_no_worker_has_is_dropped_before_leave_returns(void **state)
{
	struct fixture *fixture = *state;
	struct work running[POOL_WORK_THREADS];
	for (int i = 0; i < POOL_WORK_THREADS; i++) {
		running[i] = work_on(fixture, POOL_LANE_WORK, &fixture->gate);
		submit(fixture, &running[i]);
	}
	wait_entered(fixture, POOL_WORK_THREADS);
	struct work waiting = work_on(fixture, POOL_LANE_WORK, NULL);
	submit(fixture, &waiting);
	pool_leave(&waiting.job);
	assert_dropped_by_the_loop(fixture, &waiting);
	assert_false(waiting.ran);
	open_gate(&fixture->gate, POOL_WORK_THREADS);
	ev_run(fixture->loop, 0);
	struct work idle = work_on(fixture, POOL_LANE_WORK, NULL);
	pool_leave(&idle.job);
	assert_dropped_by_the_loop(fixture, &idle);
	assert_int_equal(fixture->done_count, POOL_WORK_THREADS);
}

static struct work *to_leave;

static void leave_other(struct work *work)
{
	pool_leave(&to_leave->job);
}

static void test_a_job_that_has_ended_may_be_left_in_done_of_another(void **state)
{
	struct fixture *fixture = *state;
	struct work works[2];
	for (int i = 0; i < 2; i++) {
		works[i] = work_on(fixture, POOL_LANE_WORK, NULL);
		works[i].on_done = leave_other;
		submit(fixture, &works[i]);
		wait_entered(fixture, 1);
		usleep(20000); // it has ended, and nobody was told yet
	}
	to_leave = &works[1];
	ev_run(fixture->loop, 0);
	assert_int_equal(works[0].done_at, 1);
	assert_dropped_by_the_loop(fixture, &works[1]);
}

static void *open_later(void *data)
{
	usleep(20000);
	open_gate(data, 1);
	return NULL;
}

static void test_destroy_waits_for_a_job_that_was_left_and_drops_it(void **state)
{
	struct fixture *fixture = *state;
	struct work running = work_on(fixture, POOL_LANE_WORK, &fixture->gate);
	pthread_t opener;
	submit(fixture, &running);
	wait_entered(fixture, 1);
	pool_leave(&running.job);
	assert_int_equal(pthread_create(&opener, NULL, open_later, &fixture->gate), 0);
	pool_destroy(fixture->pool);
	fixture->pool = NULL;
	assert_dropped_by_the_loop(fixture, &running);
	pthread_join(opener, NULL);
}

/*
 * Counts the threads of pools by their names, because a sanitizer has threads of its own. -1:
 * unknown.
 */
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
 * Waits for the end of threads that nobody joins; otherwise memory checkers would report their
 * memory.
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
		cmocka_unit_test_setup_teardown(
			test_a_job_that_runs_is_dropped_by_the_loop_once_it_has_ended, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_job_that_no_worker_has_is_dropped_before_leave_returns, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_job_that_has_ended_may_be_left_in_done_of_another, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_destroy_waits_for_a_job_that_was_left_and_drops_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_destroy_does_not_wait_for_names_that_were_left,
			set_up, tear_down_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
