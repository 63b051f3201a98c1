/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record_saver.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/soon.h"
#include "broker/ledger/record_limit.h"
#include "broker/ledger/record_owner.h"

/* A record whose lock is held. */
struct held {
	struct list link; // record_saver.held
	char id[RECORD_ID_SIZE];
	int fd;
};

enum saving_kind { SAVING_RECORD, SAVING_NOTHING, SAVING_END };

struct saving {
	struct list link; // record_saver.queue
	enum saving_kind kind;
	char id[RECORD_ID_SIZE];
	struct buf json;
	struct error err; // of writing it as JSON, or of saving it
	bool is_ok;
	char *profile;     // owned; for a new record
	size_t max_living; // for a new record: the limit of its profile
	record_saved *done;
	void *data;
};

struct record_saver {
	struct ev_loop *loop;
	struct pool *pool;
	struct soon refused; // reports a job that the pool did not take
	char *state_folder;
	struct pool_job job;
	int folder_fd;          // used by the job
	struct list held;       // of struct held; used by the job
	struct list queue;      // of struct saving
	struct saving *in_hand; // the first one; the job uses it while it runs
};

static void saving_destroy(struct saving *saving)
{
	list_remove(&saving->link);
	buf_finish(&saving->json);
	free(saving->profile);
	free(saving);
}

static void saver_drop(struct pool_job *job)
{
	struct record_saver *saver = CONTAINER_OF(job, struct record_saver, job);
	LIST_FOR_EACH(saving, &saver->queue, struct saving, link) {
		saving_destroy(saving);
	}
	LIST_FOR_EACH(held, &saver->held, struct held, link) {
		list_remove(&held->link);
		fd_close(&held->fd);
		free(held);
	}
	fd_close(&saver->folder_fd);
	free(saver->state_folder);
	free(saver);
}

/* ---- on the pool ---- */

static void add_held(struct record_saver *saver, const char *id, int fd)
{
	struct held *held = mem_alloc_zero(sizeof(*held));
	memcpy(held->id, id, sizeof(held->id));
	held->fd = fd;
	list_append(&saver->held, &held->link);
}

static bool hold(struct record_saver *saver, const char *id, struct error *err)
{
	LIST_FOR_EACH(held, &saver->held, struct held, link) {
		if (strcmp(held->id, id) == 0) {
			return true;
		}
	}
	int fd = record_lock(saver->folder_fd, id, err);
	if (fd >= 0) {
		add_held(saver, id, fd);
	}
	return fd >= 0;
}

static bool save(struct record_saver *saver, struct saving *saving)
{
	return hold(saver, saving->id, &saving->err) &&
	       record_save(saver->folder_fd, saving->id, buf_span(&saving->json), &saving->err);
}

static bool add(struct record_saver *saver, struct saving *saving)
{
	if (!record_limit_lock(saver->folder_fd, &saving->err)) {
		return false;
	}
	bool ok = record_limit_check(
			  saver->folder_fd, saving->profile, saving->max_living, &saving->err) &&
	          save(saver, saving);
	record_limit_unlock(saver->folder_fd);
	return ok;
}

static void note_end(const struct record_saver *saver)
{
	LIST_FOR_EACH(held, &saver->held, struct held, link) {
		record_owner_note(held->fd, false);
	}
}

static void run(struct pool_job *job)
{
	struct record_saver *saver = CONTAINER_OF(job, struct record_saver, job);
	struct saving *saving = saver->in_hand;
	struct error *err = &saving->err;
	if (saving->kind == SAVING_END) {
		note_end(saver);
	}
	if (!saving->is_ok || saving->kind != SAVING_RECORD) {
		return;
	}
	if (saver->folder_fd < 0) {
		struct error ignored;
		saver->folder_fd = record_folder_open(saver->state_folder, err);
		bool is_tidy = saver->folder_fd >= 0 && record_sweep(saver->folder_fd, &ignored) &&
		               record_prune(saver->folder_fd, RECORD_STOPPED_MAX, &ignored);
		(void)is_tidy; // otherwise the next broker does it
	}
	saving->is_ok = saver->folder_fd >= 0 &&
	                (saving->max_living > 0 ? add(saver, saving) : save(saver, saving));
}

/* ---- on the loop ---- */

static bool is_running(const struct record_saver *saver)
{
	return pool_has(&saver->job) || soon_is_due(&saver->refused);
}

static void submit(struct record_saver *saver)
{
	struct saving *saving = LIST_FIRST(&saver->queue, struct saving, link);
	saver->in_hand = saving;
	if (!pool_submit(saver->pool, &saver->job, &saving->err)) {
		saving->is_ok = false;
		soon_start(&saver->refused);
	}
}

static void tell(struct record_saver *saver)
{
	struct saving *saving = saver->in_hand;
	record_saved *done = saving->done;
	void *data = saving->data;
	bool is_ok = saving->is_ok;
	struct error err = saving->err;
	saving_destroy(saving);
	if (!list_is_empty(&saver->queue)) {
		submit(saver);
	}
	done(data, is_ok ? NULL : &err);
}

static void on_done(struct pool_job *job)
{
	tell(CONTAINER_OF(job, struct record_saver, job));
}

static void on_refused(struct soon *soon)
{
	tell(CONTAINER_OF(soon, struct record_saver, refused));
}

struct record_saver *record_saver_create(
	struct ev_loop *loop, struct pool *pool, const char *state_folder)
{
	struct record_saver *saver = mem_alloc_zero(sizeof(*saver));
	saver->loop = loop;
	saver->pool = pool;
	soon_init(&saver->refused, saver->loop, on_refused);
	saver->state_folder = mem_strdup(state_folder);
	saver->folder_fd = -1;
	saver->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run, .done = on_done, .drop = saver_drop};
	list_init(&saver->held);
	list_init(&saver->queue);
	return saver;
}

void record_saver_destroy(struct record_saver *saver)
{
	if (!saver) {
		return;
	}
	soon_stop(&saver->refused);
	pool_leave(&saver->job);
}

static void enqueue(
	struct record_saver *saver, struct saving *saving, record_saved *done, void *data)
{
	saving->done = done;
	saving->data = data;
	list_append(&saver->queue, &saving->link);
	if (!is_running(saver)) {
		submit(saver);
	}
}

void record_saver_save(
	struct record_saver *saver, const struct record *record, record_saved *done, void *data)
{
	record_saver_add(saver, record, 0, done, data);
}

void record_saver_add(struct record_saver *saver, const struct record *record, size_t max,
	record_saved *done, void *data)
{
	struct saving *saving = mem_alloc_zero(sizeof(*saving));
	memcpy(saving->id, record->id, sizeof(saving->id));
	buf_init(&saving->json, RECORD_FILE_MAX);
	saving->is_ok = record_write_json(record, &saving->json, &saving->err);
	saving->profile = mem_strdup(record->profile);
	saving->max_living = max;
	enqueue(saver, saving, done, data);
}

static void order(struct record_saver *saver, enum saving_kind kind, record_saved *done, void *data)
{
	struct saving *saving = mem_alloc_zero(sizeof(*saving));
	saving->kind = kind;
	buf_init(&saving->json, 0);
	saving->is_ok = true;
	enqueue(saver, saving, done, data);
}

void record_saver_flush(struct record_saver *saver, record_saved *done, void *data)
{
	order(saver, SAVING_NOTHING, done, data);
}

void record_saver_note_end(struct record_saver *saver, record_saved *done, void *data)
{
	order(saver, SAVING_END, done, data);
}

void record_saver_adopt(struct record_saver *saver, const char *id, int lock_fd)
{
	assert(!is_running(saver));
	add_held(saver, id, lock_fd);
}
