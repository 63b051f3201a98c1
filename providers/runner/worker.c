/* SPDX-License-Identifier: MIT */
#include "providers/runner/worker.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

enum { THREADS = 2 };

struct worker {
	pthread_mutex_t lock;
	pthread_cond_t has_work;
	struct list waiting; // of struct worker_job
	struct list done;
	int event_fd;
};

static void *work(void *data)
{
	struct worker *worker = data;
	pthread_mutex_lock(&worker->lock);
	for (;;) {
		while (list_is_empty(&worker->waiting)) {
			pthread_cond_wait(&worker->has_work, &worker->lock);
		}
		struct worker_job *job = LIST_FIRST(&worker->waiting, struct worker_job, link);
		list_remove(&job->link);
		pthread_mutex_unlock(&worker->lock);
		job->run(job);
		pthread_mutex_lock(&worker->lock);
		list_append(&worker->done, &job->link);
		const uint64_t one = 1;
		(void)!write(worker->event_fd, &one, sizeof(one));
	}
	return NULL;
}

struct worker *worker_create(struct error *err)
{
	struct worker *worker = mem_alloc_zero(sizeof(*worker));
	pthread_t thread;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->has_work, NULL);
	list_init(&worker->waiting);
	list_init(&worker->done);
	worker->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int errnum = worker->event_fd < 0 ? errno : 0;
	for (int i = 0; i < THREADS && errnum == 0; i++) {
		errnum = pthread_create(&thread, NULL, work, worker);
	}
	if (errnum != 0) {
		error_set_errno(err, errnum, "starting the threads for file requests");
		return NULL; // the program is ending
	}
	return worker;
}

void worker_abandon(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	list_init(&worker->waiting);
	pthread_mutex_unlock(&worker->lock);
}

void worker_submit(struct worker *worker, struct worker_job *job)
{
	pthread_mutex_lock(&worker->lock);
	list_append(&worker->waiting, &job->link);
	pthread_cond_signal(&worker->has_work);
	pthread_mutex_unlock(&worker->lock);
}

int worker_fd(const struct worker *worker)
{
	return worker->event_fd;
}

void worker_raise_done(struct worker *worker)
{
	struct list done;
	uint64_t count;
	list_init(&done);
	(void)!read(worker->event_fd, &count, sizeof(count));
	pthread_mutex_lock(&worker->lock);
	list_move_all(&done, &worker->done);
	pthread_mutex_unlock(&worker->lock);
	struct worker_job *job;
	while ((job = LIST_FIRST(&done, struct worker_job, link)) != NULL) {
		list_remove(&job->link);
		job->done(job);
	}
}
