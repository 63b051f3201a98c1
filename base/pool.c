/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/buf.h"

static const struct {
	const char *thread_name; // at most 15 characters
	size_t max_threads;
	bool may_be_stuck; // do not wait for a job that was left
} lane_kinds[POOL_LANE_COUNT] = {
	[POOL_LANE_WORK] = {"pool-work", POOL_WORK_THREADS, false},
	[POOL_LANE_SYNC] = {"pool-sync", POOL_SYNC_THREADS, false},
	[POOL_LANE_NAMES] = {"pool-names", POOL_NAMES_THREADS, true},
	[POOL_LANE_LOOKS] = {"pool-looks", POOL_LOOKS_THREADS, true},
};

/* A thread. */
struct worker {
	struct list link; // lane.workers
	struct lane *lane;
	pthread_t thread;
	/* Under the mutex: */
	struct pool_job *job; // the running job; NULL: none
	bool is_alone;        // detached, in no lane; it ends with its job, which was left
};

struct lane {
	struct pool *pool;
	pthread_cond_t has_work; // signalled for a new job, and when the pool stops
	struct list waiting;     // pool_job.link
	size_t waiting_count;
	size_t idle_count;   // threads that wait for has_work
	size_t alone_count;  // threads that are alone
	struct list workers; // worker.link; loop thread only, like their count
	size_t worker_count;
};

struct pool {
	struct ev_loop *loop;
	ev_async wakeup;
	size_t unfinished; // jobs submitted whose done was not called yet; loop thread only
	bool is_in_done;   // loop thread only
	pthread_mutex_t mutex;
	/* Protected by the mutex, like all members of the lanes that are not the loop thread's: */
	bool is_stopping;
	size_t users;      // the owner and the threads that are alone; the last one frees the pool
	struct list ended; // pool_job.link, in the order in which they ended
	struct lane lanes[POOL_LANE_COUNT];
};

/* Jobs in the pool keep the loop running. */
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

/* Frees the pool after its last user. The caller holds the mutex; this releases it. */
static void let_go(struct pool *pool)
{
	bool is_last = --pool->users == 0;
	pthread_mutex_unlock(&pool->mutex);
	if (is_last) {
		pthread_mutex_destroy(&pool->mutex);
		free(pool);
	}
}

/* ---- threads ---- */

/* Returns false if the thread must end. The mutex is held before and after. */
static bool take_job(struct worker *worker)
{
	struct lane *lane = worker->lane;
	struct pool *pool = lane->pool;
	while (list_is_empty(&lane->waiting) && !pool->is_stopping) {
		lane->idle_count++;
		pthread_cond_wait(&lane->has_work, &pool->mutex);
		lane->idle_count--;
	}
	if (pool->is_stopping) {
		return false;
	}
	worker->job = LIST_FIRST(&lane->waiting, struct pool_job, link);
	take_waiting(lane, worker->job);
	return true;
}

/* The mutex is held before and after. */
static void run_job(struct worker *worker)
{
	struct pool *pool = worker->lane->pool;
	struct pool_job *job = worker->job;
	pthread_mutex_unlock(&pool->mutex);
	job->run(job);
	pthread_mutex_lock(&pool->mutex);
	worker->job = NULL;
	if (!job->is_left || !lane_kinds[job->lane].may_be_stuck) {
		list_append(&pool->ended, &job->link);
		ev_async_send(pool->loop, &pool->wakeup);
		return;
	}
	pthread_mutex_unlock(&pool->mutex);
	job->drop(job);
	pthread_mutex_lock(&pool->mutex);
}

static void *run_lane(void *data)
{
	struct worker *worker = data;
	struct lane *lane = worker->lane;
	struct pool *pool = lane->pool;
	pthread_mutex_lock(&pool->mutex);
	while (!worker->is_alone && take_job(worker)) {
		run_job(worker);
	}
	if (!worker->is_alone) {
		pthread_mutex_unlock(&pool->mutex);
		return NULL;
	}
	lane->alone_count--;
	let_go(pool);
	free(worker);
	return NULL;
}

static int start_thread(struct lane *lane, const char *name)
{
	sigset_t all;
	sigset_t before;
	struct worker *worker = mem_alloc_zero(sizeof(*worker));
	worker->lane = lane;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&worker->thread, NULL, run_lane, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed != 0) {
		free(worker);
		return failed;
	}
	list_append(&lane->workers, &worker->link);
	lane->worker_count++;
	pthread_setname_np(worker->thread, name);
	return 0;
}

/* Starts one more thread if the lane may have it. */
static int add_thread(struct pool *pool, enum pool_lane kind)
{
	struct lane *lane = &pool->lanes[kind];
	if (lane->worker_count >= lane_kinds[kind].max_threads) {
		return 0;
	}
	return start_thread(lane, lane_kinds[kind].thread_name);
}

/* No code waits for the thread any more. With the mutex held. */
static void set_alone(struct worker *worker)
{
	struct lane *lane = worker->lane;
	list_remove(&worker->link);
	lane->worker_count--;
	lane->alone_count++;
	lane->pool->users++;
	worker->is_alone = true;
	pthread_detach(worker->thread);
}

/* The thread that runs the job, or NULL. With the mutex held. */
static struct worker *worker_of(struct lane *lane, const struct pool_job *job)
{
	LIST_FOR_EACH(worker, &lane->workers, struct worker, link) {
		if (worker->job == job) {
			return worker;
		}
	}
	return NULL;
}

/* ---- done ---- */

static void raise_done(struct pool *pool, struct pool_job *job)
{
	count_down(pool);
	job->pool = NULL;
	pool->is_in_done = true;
	(job->is_left ? job->drop : job->done)(job);
	pool->is_in_done = false;
}

/* A job that ends while this runs has sent its own wakeup. */
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
	pool->users = 1;
	pthread_mutex_init(&pool->mutex, NULL);
	list_init(&pool->ended);
	for (size_t i = 0; i < POOL_LANE_COUNT; i++) {
		pool->lanes[i].pool = pool;
		list_init(&pool->lanes[i].waiting);
		list_init(&pool->lanes[i].workers);
		pthread_cond_init(&pool->lanes[i].has_work, NULL);
	}
	ev_async_init(&pool->wakeup, on_wakeup);
	ev_async_start(loop, &pool->wakeup);
	ev_unref(loop);
	return pool;
}

/* With the mutex held. */
static void leave_stuck(struct lane *lane)
{
	LIST_FOR_EACH(worker, &lane->workers, struct worker, link) {
		if (worker->job && worker->job->is_left) {
			set_alone(worker);
		}
	}
}

/* Waits for the running jobs, except those that were left, and ends the threads. */
static void stop_threads(struct pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	pool->is_stopping = true;
	for (size_t i = 0; i < POOL_LANE_COUNT; i++) {
		if (lane_kinds[i].may_be_stuck) {
			leave_stuck(&pool->lanes[i]);
		}
		pthread_cond_broadcast(&pool->lanes[i].has_work);
	}
	pthread_mutex_unlock(&pool->mutex);
	for (size_t i = 0; i < POOL_LANE_COUNT; i++) {
		struct lane *lane = &pool->lanes[i];
		while (!list_is_empty(&lane->workers)) {
			struct worker *worker = LIST_FIRST(&lane->workers, struct worker, link);
			pthread_join(worker->thread, NULL);
			list_remove(&worker->link);
			free(worker);
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
	/* All remaining threads have jobs that were left: only the loop thread uses the lists. */
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
	pthread_mutex_lock(&pool->mutex);
	let_go(pool);
}

/* ERROR_NONE, or why the lane accepts no further job. */
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
	job->is_left = false;
	lane->waiting_count++;
	*out_is_short = lane->waiting_count > lane->idle_count;
	pthread_cond_signal(&lane->has_work);
	return ERROR_NONE;
}

bool pool_submit(struct pool *pool, struct pool_job *job, struct error *err)
{
	assert(job->lane < POOL_LANE_COUNT && !job->pool);
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
	job->pool = pool;
	count_up(pool);
	int failed = is_short ? add_thread(pool, job->lane) : 0;
	/* Without a first thread no code has begun the job. */
	if (failed != 0 && lane->worker_count == 0) {
		(void)pool_cancel(job);
		return error_set_errno(err, failed, "starting a worker thread");
	}
	return true;
}

bool pool_cancel(struct pool_job *job)
{
	struct pool *pool = job->pool;
	if (!pool) {
		return true;
	}
	pthread_mutex_lock(&pool->mutex);
	bool is_waiting = job->is_waiting;
	if (is_waiting) {
		take_waiting(&pool->lanes[job->lane], job);
	}
	pthread_mutex_unlock(&pool->mutex);
	if (is_waiting) {
		job->pool = NULL;
		count_down(pool);
	}
	return is_waiting;
}

/* False: a worker runs the job, and it is marked as left. With the mutex held. */
static bool take_back(struct lane *lane, struct pool_job *job, struct worker *worker)
{
	if (job->is_waiting) {
		take_waiting(lane, job);
	} else if (!worker) {
		list_remove(&job->link); // the job has ended
	} else {
		job->is_left = true;
		return false;
	}
	return true;
}

void pool_leave(struct pool_job *job)
{
	struct pool *pool = job->pool;
	if (!pool) {
		job->drop(job);
		return;
	}
	enum pool_lane kind = job->lane;
	struct lane *lane = &pool->lanes[kind];
	bool is_short = false;
	pthread_mutex_lock(&pool->mutex);
	struct worker *worker = worker_of(lane, job);
	bool is_free = take_back(lane, job, worker);
	bool is_stuck = !is_free && lane_kinds[kind].may_be_stuck;
	if (is_stuck && lane->alone_count < POOL_LEFT_MAX) {
		set_alone(worker);
		is_short = lane->waiting_count > lane->idle_count;
	}
	pthread_mutex_unlock(&pool->mutex);
	if (is_free || is_stuck) {
		count_down(pool);
	}
	if (is_free) {
		job->pool = NULL;
		job->drop(job);
	} else if (is_short) {
		(void)!add_thread(pool, kind); // else the next job's submit tries again
	}
}
