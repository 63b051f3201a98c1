/* SPDX-License-Identifier: MIT */
#ifndef TESTS_POOL_FIXTURE_H
#define TESTS_POOL_FIXTURE_H

/* A pool on a loop, and jobs that note what happens to them. Include it after cmocka.h. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/pool.h"

/* How many of the next threads cannot be started. */
static int threads_to_refuse;

/* In the place of the library's: the pool's threads can be refused. */
int create_or_refuse(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
	void *data) __asm__("pthread_create");

int create_or_refuse(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *data)
{
	if (threads_to_refuse > 0) {
		threads_to_refuse--;
		return EAGAIN;
	}
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = NULL;
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attributes, run, data);
}

/* A job that notes what happened to it. */
struct work {
	struct pool_job job;
	struct fixture *fixture;
	sem_t *gate; // waited for in run; may be NULL
	pthread_t ran_on;
	sigset_t mask;
	bool ran;
	bool is_dropped; // read after `dropped` was waited for
	pthread_t dropped_on;
	int done_at; // the order of the done calls, from 1; 0 is not yet
	void (*on_done)(struct work *work);
};

struct fixture {
	struct ev_loop *loop;
	struct pool *pool;
	sem_t gate;    // holds jobs in run
	sem_t entered; // one post for each job in run
	sem_t dropped; // and for each that was dropped
	int done_count;
	pthread_t loop_thread;
};

static inline void run(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	work->ran = true;
	work->ran_on = pthread_self();
	pthread_sigmask(SIG_BLOCK, NULL, &work->mask);
	sem_post(&work->fixture->entered);
	if (work->gate) {
		sem_wait(work->gate);
	}
}

static inline void done(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	assert_true(pthread_equal(pthread_self(), work->fixture->loop_thread));
	assert_int_equal(work->done_at, 0);
	work->done_at = ++work->fixture->done_count;
	if (work->on_done) {
		work->on_done(work);
	}
}

static inline void drop(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	work->is_dropped = true;
	work->dropped_on = pthread_self();
	sem_post(&work->fixture->dropped);
}

static inline struct work work_on(struct fixture *fixture, enum pool_lane lane, sem_t *gate)
{
	return (struct work){
		.job = {.run = run, .done = done, .drop = drop, .lane = lane},
		.fixture = fixture,
		.gate = gate,
	};
}

static inline void submit(struct fixture *fixture, struct work *work)
{
	struct error err;
	assert_true(pool_submit(fixture->pool, &work->job, &err));
	assert_int_equal(work->done_at, 0);
}

static inline void wait_entered(struct fixture *fixture, int count)
{
	for (int i = 0; i < count; i++) {
		sem_wait(&fixture->entered);
	}
}

/* A name whose looking up goes on until the gate is opened. */
static inline void hold_name(struct fixture *fixture, struct work *work)
{
	*work = work_on(fixture, POOL_LANE_NAMES, &fixture->gate);
	submit(fixture, work);
	wait_entered(fixture, 1);
}

static inline void wait_dropped(struct fixture *fixture, int count)
{
	for (int i = 0; i < count; i++) {
		sem_wait(&fixture->dropped);
	}
}

static inline void open_gate(sem_t *gate, int count)
{
	for (int i = 0; i < count; i++) {
		sem_post(gate);
	}
}

static inline int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	fixture->loop = ev_loop_new(0);
	fixture->pool = pool_create(fixture->loop);
	fixture->loop_thread = pthread_self();
	sem_init(&fixture->gate, 0, 0);
	sem_init(&fixture->entered, 0, 0);
	sem_init(&fixture->dropped, 0, 0);
	*state = fixture;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *fixture = *state;
	threads_to_refuse = 0;
	pool_destroy(fixture->pool);
	ev_loop_destroy(fixture->loop);
	sem_destroy(&fixture->gate);
	sem_destroy(&fixture->entered);
	sem_destroy(&fixture->dropped);
	free(fixture);
	return 0;
}

#endif
