/* SPDX-License-Identifier: MIT */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"

/*
 * The worker pool: the only place with threads. Work that blocks (libgit2, file operations, SSH
 * authentication) runs on it; its end is reported on the loop thread. Name resolution has separate
 * threads and a separate queue, so that a dead DNS server delays nothing else. So does sync,
 * because its jobs may wait for a connection that another job has to make first. The checks of
 * folders by `acp-broker doctor` (looks) have their own lane, because a file system may never
 * answer. A thread starts when a job finds no idle thread, and then stays. All signals are blocked
 * in the threads.
 *
 * All functions are for the loop thread. Unfinished jobs keep the loop running; an idle pool does
 * not.
 */
enum pool_lane {
	POOL_LANE_WORK,
	POOL_LANE_SYNC,
	POOL_LANE_NAMES,
	POOL_LANE_LOOKS,
	POOL_LANE_COUNT
};

enum {
	POOL_WORK_THREADS = 4,
	POOL_SYNC_THREADS = 4,
	POOL_NAMES_THREADS = 2,
	POOL_LOOKS_THREADS = 1,
	POOL_QUEUE_MAX = 1024, // waiting jobs per lane; one more fails with ERROR_LIMIT
	POOL_LEFT_MAX = 16,    // threads of a lane that pool_leave has replaced by others
};

struct pool;

/*
 * One piece of work, embedded in the data that it works on. `run` is called on a worker thread and
 * touches nothing but that data. Until the job has ended, the loop's thread may read what neither
 * side changes, and may set atomic flags that tell the job to give up. Then `done` is
 * called on the loop's thread, in the order in which jobs ended. If the owner has left the job
 * (pool_leave), `drop` is called instead.
 */
struct pool_job {
	struct list link;    // private
	struct pool *pool;   // the pool that has the job; NULL: none (pool_has); private
	bool is_waiting;     // private
	bool is_left;        // private
	enum pool_lane lane; // set before submit
	void (*run)(struct pool_job *job);  // worker thread
	void (*done)(struct pool_job *job); // loop thread; may free the job or submit it again
	void (*drop)(struct pool_job *
			job); // frees the job and its data; NULL: pool_leave is never called for it
};

struct pool *pool_create(struct ev_loop *loop);

/*
 * Waits until the running jobs have ended, except name jobs and looks that their owner left
 * (pool_leave). Then calls `done` or `drop` for every submitted job; jobs that had not begun never
 * run. A `done` called from here may cancel other jobs, but a new submit fails with
 * ERROR_UNAVAILABLE. Not from inside `done`. NULL is fine.
 */
void pool_destroy(struct pool *pool);

/*
 * Puts a job, which is in no pool, at the end of its lane. Fails with ERROR_LIMIT if the lane is
 * full, and with ERROR_SYSTEM if its first thread cannot start; then `done` is not called. Calls no
 * callback before it returns.
 */
bool pool_submit(struct pool *pool, struct pool_job *job, struct error *err) ATTR_NODISCARD;

/* The job was submitted, and neither done nor drop has been called. */
static inline bool pool_has(const struct pool_job *job)
{
	return job->pool != NULL;
}

/*
 * Takes back a submitted job that has not begun. True: `done` will not be called; also for a job
 * that is in no pool. False: the job has begun or ended, and `done` will be called.
 */
bool pool_cancel(struct pool_job *job);

/*
 * The owner goes away, but the job stays: `drop` is called instead of `done`. If no worker runs the
 * job, `drop` is called before this returns, also if the job was never submitted or is done.
 * Otherwise it is called on the loop thread, once the job has ended.
 *
 * A name job (POOL_LANE_NAMES) may be stuck in getaddrinfo, and a look (POOL_LANE_LOOKS) in a call
 * of a file system; nothing can interrupt them. Another
 * thread replaces the one that runs it; `drop` is then called on the stuck thread. Not even
 * pool_destroy waits for it: the end of the process ends it. If more than POOL_LEFT_MAX threads are
 * stuck, the further ones are not replaced, and the jobs that wait in the lane wait for them.
 */
void pool_leave(struct pool_job *job);

#endif
