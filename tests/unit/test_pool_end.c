/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/pool_fixture.h"

static void destroy(struct fixture *fixture)
{
	pool_destroy(fixture->pool);
	fixture->pool = NULL;
}

static void test_pool_without_jobs_is_destroyed(void **state)
{
	struct fixture *fixture = *state;
	destroy(fixture);
	pool_destroy(NULL);
	ev_run(fixture->loop, 0); // it left no watcher behind
}

static void *open_later(void *data)
{
	struct fixture *fixture = data;
	usleep(20000);
	open_gate(&fixture->gate, POOL_NAMES_THREADS);
	return NULL;
}

/* Two jobs are held, two wait; destroying lets go of the gate a little later. */
static void destroy_with_waiting(struct fixture *fixture, struct work works[4])
{
	pthread_t opener;
	for (int i = 0; i < 4; i++) {
		submit(fixture, &works[i]);
	}
	wait_entered(fixture, POOL_NAMES_THREADS);
	assert_int_equal(pthread_create(&opener, NULL, open_later, fixture), 0);
	destroy(fixture);
	pthread_join(opener, NULL);
}

static void test_destroy_waits_for_running_jobs_and_tells_all(void **state)
{
	struct fixture *fixture = *state;
	struct work works[4];
	for (int i = 0; i < 4; i++) {
		works[i] = work_on(fixture, POOL_LANE_NAMES, &fixture->gate);
	}
	destroy_with_waiting(fixture, works);
	assert_int_equal(fixture->done_count, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(works[i].ran, i < 2);
	}
	assert_in_range(works[0].done_at, 1, 2);
	assert_in_range(works[1].done_at, 1, 2);
	assert_int_equal(works[2].done_at, 3);
	assert_int_equal(works[3].done_at, 4);
	ev_run(fixture->loop, 0);
}

static void test_destroy_tells_what_had_ended_before(void **state)
{
	struct fixture *fixture = *state;
	struct work work = work_on(fixture, POOL_LANE_WORK, NULL);
	submit(fixture, &work);
	wait_entered(fixture, 1);
	usleep(20000);
	assert_int_equal(work.done_at, 0);
	destroy(fixture);
	assert_int_equal(work.done_at, 1);
}

static struct work *to_cancel;
static int refused;

static void submit_in_vain(struct work *work)
{
	struct error err = {0};
	assert_false(pool_submit(work->fixture->pool, &work->job, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	refused++;
}

static void cancel_other(struct work *work)
{
	if (to_cancel) {
		assert_true(pool_cancel(&to_cancel->job));
		to_cancel = NULL;
	}
}

static void test_done_while_destroyed_may_cancel_but_not_submit(void **state)
{
	struct fixture *fixture = *state;
	struct work works[4];
	for (int i = 0; i < 4; i++) {
		works[i] = work_on(fixture, POOL_LANE_NAMES, &fixture->gate);
		works[i].on_done = i == 0 ? cancel_other : submit_in_vain;
	}
	to_cancel = &works[2];
	refused = 0;
	destroy_with_waiting(fixture, works);
	assert_int_equal(refused, 2);
	assert_int_equal(works[2].done_at, 0);
	assert_int_equal(works[3].done_at, 3);
	assert_false(works[3].ran);
}

static void test_pool_without_any_thread_refuses_the_job(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct work work = work_on(fixture, POOL_LANE_WORK, NULL);
	threads_to_refuse = 1;
	assert_false(pool_submit(fixture->pool, &work.job, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_string_equal(err.text, "starting a worker thread: Resource temporarily unavailable");
	ev_run(fixture->loop, 0);
	assert_false(work.ran);
	assert_int_equal(work.done_at, 0);
	submit(fixture, &work);
	ev_run(fixture->loop, 0);
	assert_int_equal(work.done_at, 1);
}

static void test_one_thread_does_where_no_second_starts(void **state)
{
	struct fixture *fixture = *state;
	struct work first = work_on(fixture, POOL_LANE_WORK, &fixture->gate);
	struct work second = work_on(fixture, POOL_LANE_WORK, NULL);
	submit(fixture, &first);
	threads_to_refuse = 1;
	submit(fixture, &second);
	assert_int_equal(threads_to_refuse, 0);
	sem_post(&fixture->gate);
	ev_run(fixture->loop, 0);
	assert_true(pthread_equal(first.ran_on, second.ran_on));
	assert_int_equal(second.done_at, 2);
}

int main(void)
{
	alarm(100); // a pool that hangs ends here
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_pool_without_jobs_is_destroyed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_destroy_waits_for_running_jobs_and_tells_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_destroy_tells_what_had_ended_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_done_while_destroyed_may_cancel_but_not_submit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_pool_without_any_thread_refuses_the_job, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_one_thread_does_where_no_second_starts, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
