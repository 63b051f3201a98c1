/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/buf.h"

static const struct {
	const char *thread_name; // 15 characters at the most
	size_t max_threads;
} lane_kinds[POOL_LANE_COUNT] = {
	[POOL_LANE_WORK] = {"pool-work", POOL_WORK_THREADS},
	[POOL_LANE_SYNC] = {"pool-sync", POOL_SYNC_THREADS},
	[POOL_LANE_NAMES] = {"pool-names", POOL_NAMES_THREADS},
};

enum { POOL_THREADS_MAX = POOL_WORK_THREADS }; // of any lane
static_assert((int)POOL_SYNC_THREADS <= (int)POOL_THREADS_MAX, "every lane's threads fit");
static_assert((int)POOL_NAMES_THREADS <= (int)POOL_THREADS_MAX, "every lane's threads fit");

struct lane {
	struct pool *pool;
	pthread_cond_t has_work; // or the pool is stopping
	struct list waiting;     // pool_job.link
	size_t waiting_count;
	size_t idle_count; // threads in has_work
	pthread_t threads[POOL_THREADS_MAX];
	size_t thread_count; // loop thread only
};

struct pool {
	struct ev_loop *loop;
	ev_async wakeup;
	size_t unfinished; // jobs submitted, done not yet raised; loop thread only
	bool is_in_done;   // loop thread only
	pthread_mutex_t mutex;
	/* Under the mutex, and in the lanes all that is not said to be the loop's: */
	bool is_stopping;
	struct list ended; // pool_job.link, in the order in which they ended
	struct lane lanes[POOL_LANE_COUNT];
};

/* A job the pool holds keeps the loop running. */
static void count_up(struct pool *pool)
{
	if (pool->unfinished++ == 0) {
		ev_ref(pool->loop);
	}
}

static void count_down(struct pool *pool)
{
	assert(pool->unfinished > 0);
	if (--pool->unfinished == 0) {
		ev_unref(pool->loop);
	}
}

static void take_waiting(struct lane *lane, struct pool_job *job)
{
	list_remove(&job->link);
	job->is_waiting = false;
	lane->waiting_count--;
}

/* The next job, or NULL when the thread has to end. Called and left with the mutex held. */
static struct pool_job *wait_for_job(struct lane *lane)
{
	struct pool *pool = lane->pool;
	while (list_is_empty(&lane->waiting) && !pool->is_stopping) {
		lane->idle_count++;
		pthread_cond_wait(&lane->has_work, &pool->mutex);
		lane->idle_count--;
	}
	if (pool->is_stopping) {
		return NULL;
	}
	struct pool_job *job = LIST_FIRST(&lane->waiting, struct pool_job, link);
	take_waiting(lane, job);
	return job;
}

static void *run_lane(void *data)
{
	struct lane *lane = data;
	struct pool *pool = lane->pool;
	struct pool_job *job;
	pthread_mutex_lock(&pool->mutex);
	while ((job = wait_for_job(lane)) != NULL) {
		pthread_mutex_unlock(&pool->mutex);
		job->run(job);
		pthread_mutex_lock(&pool->mutex);
		list_append(&pool->ended, &job->link);
		ev_async_send(pool->loop, &pool->wakeup);
	}
	pthread_mutex_unlock(&pool->mutex);
	return NULL;
}

static int start_thread(struct lane *lane, const char *name)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_t *thread = &lane->threads[lane->thread_count];
	int failed = pthread_create(thread, NULL, run_lane, lane);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed == 0) {
		lane->thread_count++;
		pthread_setname_np(*thread, name);
	}
	return failed;
}

static void raise_done(struct pool *pool, struct pool_job *job)
{
	count_down(pool);
	pool->is_in_done = true;
	job->done(job);
	pool->is_in_done = false;
}

/* What ends while this runs has sent its own wakeup. */
static void raise_ended(struct pool *pool)
{
	struct list ended;
	list_init(&ended);
	pthread_mutex_lock(&pool->mutex);
	list_move_all(&ended, &pool->ended);
	pthread_mutex_unlock(&pool->mutex);
	while (!list_is_empty(&ended)) {
		struct pool_job *job = LIST_FIRST(&ended, struct pool_job, link);
		list_remove(&job->link);
		raise_done(pool, job);
	}
}

static void on_wakeup(struct ev_loop *loop, ev_async *watcher, int events)
{
	raise_ended(CONTAINER_OF(watcher, struct pool, wakeup));
}

struct pool *pool_create(struct ev_loop *loop)
{
	struct pool *pool = mem_alloc_zero(sizeof(*pool));
	pool->loop = loop;
	pthread_mutex_init(&pool->mutex, NULL);
	list_init(&pool->ended);
	for (size_t i = 0; i < POOL_LANE_COUNT; i++) {
		pool->lanes[i].pool = pool;
		list_init(&pool->lanes[i].waiting);
		pthread_cond_init(&pool->lanes[i].has_work, NULL);
	}
	ev_async_init(&pool->wakeup, on_wakeup);
	ev_async_start(loop, &pool->wakeup);
	ev_unref(loop);
	return pool;
}

/* Lets every running job end, and the threads. */
static void stop_threads(struct pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	pool->is_stopping = true;
	for (size_t i = 0; i < POOL_LANE_COUNT; i++) {
		pthread_cond_broadcast(&pool->lanes[i].has_work);
	}
	pthread_mutex_unlock(&pool->mutex);
	for (size_t i = 0; i < POOL_LANE_COUNT; i++) {
		struct lane *lane = &pool->lanes[i];
		for (size_t j = 0; j < lane->thread_count; j++) {
			pthread_join(lane->threads[j], NULL);
		}
	}
}

void pool_destroy(struct pool *pool)
{
	if (!pool) {
		return;
	}
	assert(!pool->is_in_done);
	stop_threads(pool);
	/* No thread is left: the mutex is not needed from here on. */
	raise_ended(pool);
	for (size_t i = 0; i < POOL_LANE_COUNT; i++) {
		struct lane *lane = &pool->lanes[i];
		while (!list_is_empty(&lane->waiting)) {
			struct pool_job *job = LIST_FIRST(&lane->waiting, struct pool_job, link);
			take_waiting(lane, job);
			raise_done(pool, job);
		}
		pthread_cond_destroy(&lane->has_work);
	}
	assert(pool->unfinished == 0);
	ev_ref(pool->loop);
	ev_async_stop(pool->loop, &pool->wakeup);
	pthread_mutex_destroy(&pool->mutex);
	free(pool);
}

/* ERROR_NONE, or why the lane takes no further job. */
static enum error_code lane_add(struct lane *lane, struct pool_job *job, bool *out_is_short)
{
	if (lane->pool->is_stopping) {
		return ERROR_UNAVAILABLE;
	}
	if (lane->waiting_count >= POOL_QUEUE_MAX) {
		return ERROR_LIMIT;
	}
	list_append(&lane->waiting, &job->link);
	job->is_waiting = true;
	lane->waiting_count++;
	*out_is_short = lane->waiting_count > lane->idle_count;
	pthread_cond_signal(&lane->has_work);
	return ERROR_NONE;
}

bool pool_submit(struct pool *pool, struct pool_job *job, struct error *err)
{
	assert(job->lane < POOL_LANE_COUNT);
	struct lane *lane = &pool->lanes[job->lane];
	bool is_short = false;
	pthread_mutex_lock(&pool->mutex);
	enum error_code code = lane_add(lane, job, &is_short);
	pthread_mutex_unlock(&pool->mutex);
	if (code == ERROR_UNAVAILABLE) {
		return error_set(err, code, "the worker pool is ending");
	}
	if (code == ERROR_LIMIT) {
		return error_set(err, code, "more than %d jobs are waiting", POOL_QUEUE_MAX);
	}
	count_up(pool);
	if (is_short && lane->thread_count < lane_kinds[job->lane].max_threads) {
		int failed = start_thread(lane, lane_kinds[job->lane].thread_name);
		/* Without the first thread nothing has begun the job. */
		if (failed != 0 && lane->thread_count == 0) {
			(void)pool_cancel(pool, job);
			return error_set_errno(err, failed, "starting a worker thread");
		}
	}
	return true;
}

bool pool_cancel(struct pool *pool, struct pool_job *job)
{
	pthread_mutex_lock(&pool->mutex);
	bool is_waiting = job->is_waiting;
	if (is_waiting) {
		take_waiting(&pool->lanes[job->lane], job);
	}
	pthread_mutex_unlock(&pool->mutex);
	if (is_waiting) {
		count_down(pool);
	}
	return is_waiting;
}
