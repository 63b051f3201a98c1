/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/pool_fixture.h"

static void test_job_runs_on_a_thread_and_is_done_on_the_loop(void **state)
{
	struct fixture *fixture = *state;
	struct work work = work_on(fixture, POOL_LANE_WORK, NULL);
	submit(fixture, &work);
	ev_run(fixture->loop, 0);
	assert_true(work.ran);
	assert_false(pthread_equal(work.ran_on, pthread_self()));
	assert_int_equal(work.done_at, 1);
}

/* ev_run returns only when nothing keeps the loop. */
static void test_idle_pool_does_not_keep_the_loop_running(void **state)
{
	struct fixture *fixture = *state;
	ev_run(fixture->loop, 0);
	for (int i = 0; i < 3; i++) {
		struct work work = work_on(fixture, POOL_LANE_NAMES, NULL);
		submit(fixture, &work);
		ev_run(fixture->loop, 0);
		assert_int_equal(work.done_at, i + 1);
		ev_run(fixture->loop, 0);
	}
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct fixture *fixture = timer->data;
	assert_int_equal(fixture->done_count, 0);
	sem_post(&fixture->gate);
}

static void test_unfinished_job_keeps_the_loop_running(void **state)
{
	struct fixture *fixture = *state;
	struct work work = work_on(fixture, POOL_LANE_WORK, &fixture->gate);
	ev_timer timer;
	ev_timer_init(&timer, on_timer, 0.02, 0);
	timer.data = fixture;
	ev_timer_start(fixture->loop, &timer);
	submit(fixture, &work);
	ev_run(fixture->loop, 0);
	assert_int_equal(work.done_at, 1);
}

static void test_done_comes_in_the_order_in_which_jobs_ended(void **state)
{
	struct fixture *fixture = *state;
	sem_t gates[3];
	struct work works[3];
	for (int i = 0; i < 3; i++) {
		sem_init(&gates[i], 0, 0);
		works[i] = work_on(fixture, POOL_LANE_WORK, &gates[i]);
		submit(fixture, &works[i]);
	}
	wait_entered(fixture, 3);
	static const int order[] = {1, 2, 0};
	for (int i = 0; i < 3; i++) {
		sem_post(&gates[order[i]]);
		while (!works[order[i]].done_at) {
			ev_run(fixture->loop, EVRUN_ONCE);
		}
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(works[order[i]].done_at, i + 1);
		sem_destroy(&gates[i]);
	}
}

static void test_one_thread_keeps_the_order_of_jobs(void **state)
{
	struct fixture *fixture = *state;
	struct work works[50];
	threads_to_refuse = 0;
	for (int i = 0; i < 50; i++) {
		works[i] = work_on(fixture, POOL_LANE_WORK, i == 0 ? &fixture->gate : NULL);
		submit(fixture, &works[i]);
		threads_to_refuse = 1000; // only the first thread starts
	}
	sem_post(&fixture->gate);
	ev_run(fixture->loop, 0);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(works[i].done_at, i + 1);
		assert_true(pthread_equal(works[i].ran_on, works[0].ran_on));
	}
}

/* As many jobs run at once as there are threads; the next one begins when one has ended. */
static void check_width(struct fixture *fixture, enum pool_lane lane, int width)
{
	struct work works[POOL_WORK_THREADS + 1];
	for (int i = 0; i <= width; i++) {
		works[i] = work_on(fixture, lane, &fixture->gate);
		submit(fixture, &works[i]);
	}
	wait_entered(fixture, width);
	usleep(20000);
	assert_int_equal(sem_trywait(&fixture->entered), -1);
	sem_post(&fixture->gate);
	wait_entered(fixture, 1);
	open_gate(&fixture->gate, width);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->done_count, width + 1);
	for (int i = 0; i <= width; i++) {
		assert_true(works[i].ran);
	}
}

static void test_work_runs_on_its_four_threads(void **state)
{
	check_width(*state, POOL_LANE_WORK, POOL_WORK_THREADS);
}

static void test_names_are_resolved_on_their_two_threads(void **state)
{
	check_width(*state, POOL_LANE_NAMES, POOL_NAMES_THREADS);
}

/* More jobs of this lane than it has threads. */
static void check_holds_up_no_work(struct fixture *fixture, enum pool_lane lane)
{
	struct work stuck[5];
	for (int i = 0; i < 5; i++) {
		stuck[i] = work_on(fixture, lane, &fixture->gate);
		submit(fixture, &stuck[i]);
	}
	struct work work = work_on(fixture, POOL_LANE_WORK, NULL);
	submit(fixture, &work);
	while (!work.done_at) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	assert_int_equal(work.done_at, 1);
	open_gate(&fixture->gate, 5);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->done_count, 6);
}

static void test_stuck_names_hold_up_no_work(void **state)
{
	check_holds_up_no_work(*state, POOL_LANE_NAMES);
}

static void test_syncs_that_wait_hold_up_no_work(void **state)
{
	check_holds_up_no_work(*state, POOL_LANE_SYNC);
}

static void test_idle_thread_takes_the_next_job(void **state)
{
	struct fixture *fixture = *state;
	struct work first = work_on(fixture, POOL_LANE_WORK, NULL);
	submit(fixture, &first);
	ev_run(fixture->loop, 0);
	usleep(50000); // the thread goes back to waiting
	threads_to_refuse = 1000;
	struct work second = work_on(fixture, POOL_LANE_WORK, NULL);
	submit(fixture, &second);
	ev_run(fixture->loop, 0);
	assert_true(pthread_equal(first.ran_on, second.ran_on));
	assert_int_equal(second.done_at, 2);
}

static void test_full_lane_refuses_one_more_and_the_other_does_not(void **state)
{
	enum { ALL = POOL_WORK_THREADS + POOL_QUEUE_MAX };
	struct fixture *fixture = *state;
	struct error err = {0};
	struct work *works = mem_alloc_zero(ALL * sizeof(*works));
	for (int i = 0; i < ALL; i++) {
		works[i] = work_on(fixture, POOL_LANE_WORK, &fixture->gate);
		submit(fixture, &works[i]);
		if (i < POOL_WORK_THREADS) {
			wait_entered(fixture, 1);
		}
	}
	struct work more = work_on(fixture, POOL_LANE_WORK, NULL);
	assert_false(pool_submit(fixture->pool, &more.job, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "more than 1024 jobs are waiting");
	struct work name = work_on(fixture, POOL_LANE_NAMES, NULL);
	submit(fixture, &name);
	open_gate(&fixture->gate, ALL);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->done_count, ALL + 1);
	assert_false(more.ran);
	submit(fixture, &more);
	ev_run(fixture->loop, 0);
	assert_true(more.ran);
	free(works);
}

static void test_only_a_job_that_has_not_begun_can_be_cancelled(void **state)
{
	struct fixture *fixture = *state;
	struct work running[POOL_NAMES_THREADS];
	for (int i = 0; i < POOL_NAMES_THREADS; i++) {
		hold_name(fixture, &running[i]);
	}
	struct work waiting = work_on(fixture, POOL_LANE_NAMES, NULL);
	struct work after = work_on(fixture, POOL_LANE_NAMES, NULL);
	submit(fixture, &waiting);
	submit(fixture, &after);
	assert_false(pool_cancel(&running[0].job));
	assert_true(pool_cancel(&waiting.job));
	assert_true(pool_cancel(&waiting.job)); // no pool has it
	open_gate(&fixture->gate, POOL_NAMES_THREADS);
	wait_entered(fixture, 1);
	usleep(10000);
	assert_false(pool_cancel(&after.job)); // ended, not yet told
	ev_run(fixture->loop, 0);
	assert_false(pool_has(&after.job));
	assert_int_equal(fixture->done_count, POOL_NAMES_THREADS + 1);
	assert_false(waiting.ran);
	assert_int_equal(waiting.done_at, 0);
	assert_true(after.ran);
}

static void test_all_signals_are_blocked_in_a_worker_and_none_in_the_loop(void **state)
{
	struct fixture *fixture = *state;
	struct work work = work_on(fixture, POOL_LANE_WORK, NULL);
	sigset_t before;
	sigset_t after;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	submit(fixture, &work);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	ev_run(fixture->loop, 0);
	for (int signal = 1; signal < NSIG; signal++) {
		assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
		bool is_libc = signal >= 32 && signal < SIGRTMIN;
		if (signal != SIGKILL && signal != SIGSTOP && !is_libc) {
			assert_true(sigismember(&work.mask, signal));
		}
	}
}

static void free_work(struct work *work)
{
	free(work);
}

static void test_done_may_free_its_job(void **state)
{
	struct fixture *fixture = *state;
	for (int i = 0; i < 20; i++) {
		struct work *work = mem_alloc(sizeof(*work));
		*work = work_on(fixture, (enum pool_lane)(i % POOL_LANE_COUNT), NULL);
		work->on_done = free_work;
		submit(fixture, work);
	}
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->done_count, 20);
}

static void submit_again(struct work *work)
{
	if (work->fixture->done_count < 100) {
		work->done_at = 0;
		submit(work->fixture, work);
	}
}

static void test_done_may_submit_its_job_again(void **state)
{
	struct fixture *fixture = *state;
	struct work work = work_on(fixture, POOL_LANE_WORK, NULL);
	work.on_done = submit_again;
	submit(fixture, &work);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->done_count, 100);
}

int main(void)
{
	alarm(100); // a pool that hangs ends here
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_job_runs_on_a_thread_and_is_done_on_the_loop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_idle_pool_does_not_keep_the_loop_running, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_unfinished_job_keeps_the_loop_running, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_done_comes_in_the_order_in_which_jobs_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_one_thread_keeps_the_order_of_jobs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_work_runs_on_its_four_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_names_are_resolved_on_their_two_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_stuck_names_hold_up_no_work, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_syncs_that_wait_hold_up_no_work, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_idle_thread_takes_the_next_job, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_full_lane_refuses_one_more_and_the_other_does_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_only_a_job_that_has_not_begun_can_be_cancelled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_all_signals_are_blocked_in_a_worker_and_none_in_the_loop, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_done_may_free_its_job, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_done_may_submit_its_job_again, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
