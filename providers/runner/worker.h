/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_RUNNER_WORKER_H
#define PROVIDERS_RUNNER_WORKER_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"

/*
 * Two threads for work that blocks, such as all work on files. Like base/pool.h, but without an
 * event loop.
 */
struct worker;

struct worker_job {
	struct list link;                     // the worker's
	void (*run)(struct worker_job *job);  // on a thread
	void (*done)(struct worker_job *job); // on the loop's thread; may free it
};

struct worker *worker_create(struct error *err) ATTR_NODISCARD;

/*
 * Drops the jobs that no thread has begun, without calling `done`. Does not wait for running ones.
 */
void worker_abandon(struct worker *worker);

void worker_submit(struct worker *worker, struct worker_job *job);
int worker_fd(const struct worker *worker);    // readable while finished jobs wait
void worker_raise_done(struct worker *worker); // calls `done` for each finished job

#endif
