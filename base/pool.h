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
 * The worker pool: the one place with threads. Work that blocks (libgit2, file
 * operations, SSH authentication) runs on it; its end is told on the loop
 * thread. Name resolution has threads and a queue of its own, so that a dead
 * DNS server holds up nothing else. So has sync: its jobs last as long as what
 * they wait for elsewhere, which may be a connection that another job has to
 * make first. Threads start when there is work that no
 * idle one can take, and stay. All signals are blocked in them.
 *
 * All functions are for the loop thread. Jobs that are not done keep the loop
 * running, an idle pool does not.
 */
enum pool_lane { POOL_LANE_WORK, POOL_LANE_SYNC, POOL_LANE_NAMES, POOL_LANE_COUNT };

enum {
	POOL_WORK_THREADS = 4,
	POOL_SYNC_THREADS = 4,
	POOL_NAMES_THREADS = 2,
	POOL_QUEUE_MAX = 1024, // waiting jobs a lane; one more is ERROR_LIMIT
	POOL_LEFT_MAX = 16,    // threads of a lane that others have taken the place of (pool_leave)
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
	struct list link;                   // pool's; private
	struct pool *pool;                  // that has it; NULL: none (pool_has); private
	bool is_waiting;                    // pool's; private
	bool is_left;                       // pool's; private
	enum pool_lane lane;                // set before submit
	void (*run)(struct pool_job *job);  // worker thread
	void (*done)(struct pool_job *job); // loop thread; may free the job or submit it again
	void (*drop)(struct pool_job *job); // frees the job and its data; NULL: it is never left
};

struct pool *pool_create(struct ev_loop *loop);

/*
 * Waits until the running jobs have ended. It does not wait for a name's job that was left.
 * Then calls done, or drop, for all that were submitted; those not begun never ran.
 * A done called from here may cancel others, but what it submits is refused
 * (ERROR_UNAVAILABLE). Not from inside done. NULL is fine.
 */
void pool_destroy(struct pool *pool);

/*
 * Puts a job, which is in no pool, at the end of its lane. Fails with
 * ERROR_LIMIT when the lane is full and ERROR_SYSTEM when its first thread
 * cannot start; done does not come then. Raises nothing before it returns.
 */
bool pool_submit(struct pool *pool, struct pool_job *job, struct error *err) ATTR_NODISCARD;

/* The job was submitted, and neither done nor drop has been called. */
static inline bool pool_has(const struct pool_job *job)
{
	return job->pool != NULL;
}

/*
 * Takes back a submitted job that has not begun. True: done does not come, also for a job that no
 * pool has. False: the job has begun or ended, and done will come.
 */
bool pool_cancel(struct pool_job *job);

/*
 * The owner goes and the job stays: done does not come, drop does. It is called before this returns
 * if no worker runs the job, also if the job was never submitted or is done. Otherwise it is called
 * on the loop's thread, once the job has ended.
 *
 * A name's job (POOL_LANE_NAMES) may be stuck where nothing interrupts it, in getaddrinfo. Another
 * thread takes the place of the one that runs it, drop is called on that one, and not even the end
 * of the pool waits for it: the end of the process cuts it off. With more than POOL_LEFT_MAX such
 * threads, the further ones keep their places, and the jobs that wait there wait for them.
 */
void pool_leave(struct pool_job *job);

#endif
