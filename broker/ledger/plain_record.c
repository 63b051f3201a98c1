/* SPDX-License-Identifier: MIT */
#include "broker/ledger/plain_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "broker/ledger/record_limit.h"

/* One workspace with open sessions. */
struct row {
	struct list link; // plain_records.rows
	struct record record;
	bool is_dirty; // the file is out of date
};

/* A file to write or to remove. */
struct task {
	char id[RECORD_ID_SIZE];
	char *json; // owned; NULL: remove the file
};

/* A lock on an existing file. */
struct held {
	struct list link; // work.held
	char id[RECORD_ID_SIZE];
	int fd;
};

/* The worker's side; outlives the records while a worker uses it. */
struct work {
	struct pool_job job;
	struct plain_records *records;
	char *state_folder; // owned
	int folder_fd;      // -1: not opened yet
	struct list held;   // of struct held
	struct task *tasks; // owned
	size_t task_count;
	bool is_ok;
	struct error err;
};

struct plain_records {
	struct pool *pool;
	char *profile, *backend, *agent; // owned
	struct list rows;                // of struct row
	struct work *work;
	bool has_failed; // and the failure was logged
};

/* ---- on the pool ---- */

static struct held *find_held(struct work *work, const char *id)
{
	LIST_FOR_EACH(held, &work->held, struct held, link) {
		if (strcmp(held->id, id) == 0) {
			return held;
		}
	}
	return NULL;
}

static bool hold(struct work *work, const char *id, struct error *err)
{
	int fd = record_lock(work->folder_fd, id, err);
	if (fd < 0) {
		return false;
	}
	struct held *held = mem_alloc_zero(sizeof(*held));
	memcpy(held->id, id, sizeof(held->id));
	held->fd = fd;
	list_append(&work->held, &held->link);
	return true;
}

/* While the folder is locked, no other broker takes a new lock file for an abandoned one. */
static bool write_first(struct work *work, const struct task *task, struct error *err)
{
	if (!record_limit_lock(work->folder_fd, err)) {
		return false;
	}
	bool ok = hold(work, task->id, err) &&
	          record_write(work->folder_fd, task->id, span_of(task->json), err);
	record_limit_unlock(work->folder_fd);
	return ok;
}

static bool remove_held(struct work *work, struct held *held, struct error *err)
{
	bool ok = record_remove(work->folder_fd, held->id, err);
	list_remove(&held->link);
	fd_close(&held->fd);
	free(held);
	return ok;
}

static bool do_task(struct work *work, const struct task *task, struct error *err)
{
	struct held *held = find_held(work, task->id);
	if (!task->json) {
		return !held || remove_held(work, held, err);
	}
	return held ? record_write(work->folder_fd, task->id, span_of(task->json), err)
	            : write_first(work, task, err);
}

static bool open_folder(struct work *work, struct error *err)
{
	struct error ignored; // commands that list them sweep too
	if (work->folder_fd < 0) {
		work->folder_fd = plain_folder_open(work->state_folder, err);
		(void)!(work->folder_fd >= 0 && plain_folder_sweep(work->folder_fd, &ignored));
	}
	return work->folder_fd >= 0;
}

static void on_run(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	work->is_ok = open_folder(work, &work->err);
	for (size_t i = 0; work->is_ok && i < work->task_count; i++) {
		work->is_ok = do_task(work, &work->tasks[i], &work->err);
	}
}

static void drop_tasks(struct work *work)
{
	for (size_t i = 0; i < work->task_count; i++) {
		free(work->tasks[i].json);
	}
	free(work->tasks);
	work->tasks = NULL;
	work->task_count = 0;
}

static void on_drop(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	struct error ignored; // an unlocked file counts as abandoned, and is removed later
	LIST_FOR_EACH(held, &work->held, struct held, link) {
		(void)!remove_held(work, held, &ignored);
	}
	drop_tasks(work);
	fd_close(&work->folder_fd);
	free(work->state_folder);
	free(work);
}

/* ---- on the loop ---- */

static void row_destroy(struct row *row)
{
	list_remove(&row->link);
	record_finish(&row->record);
	free(row);
}

static void add_task(struct work *work, const struct row *row)
{
	struct buf json;
	struct error err;
	bool is_open = row->record.session_count > 0;
	buf_init(&json, RECORD_FILE_MAX);
	if (!is_open || record_write_json(&row->record, &json, &err)) {
		work->tasks =
			mem_realloc(work->tasks, (work->task_count + 1) * sizeof(*work->tasks));
		struct task *task = &work->tasks[work->task_count++];
		memcpy(task->id, row->record.id, sizeof(task->id));
		task->json = is_open ? mem_strndup(buf_span(&json)) : NULL;
	} else {
		log_info("%s: its record was not written: %s", row->record.local_root, err.text);
	}
	buf_finish(&json);
}

static void note_failure(struct plain_records *records, const struct error *err)
{
	if (!records->has_failed) {
		log_info("acp-broker sessions list does not show the sessions of this broker: %s",
			err->text);
	}
	records->has_failed = true;
}

static void submit(struct plain_records *records)
{
	struct work *work = records->work;
	struct error err;
	if (pool_has(&work->job)) {
		return; // on_done calls this again
	}
	LIST_FOR_EACH(row, &records->rows, struct row, link) {
		if (row->is_dirty) {
			add_task(work, row);
			row->is_dirty = false;
		}
		if (row->record.session_count == 0) {
			row_destroy(row);
		}
	}
	if (work->task_count > 0 && !pool_submit(records->pool, &work->job, &err)) {
		drop_tasks(work);
		note_failure(records, &err);
	}
}

static void on_done(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	drop_tasks(work);
	if (!work->is_ok) {
		note_failure(work->records, &work->err);
	}
	submit(work->records);
}

struct plain_records *plain_records_create(const struct plain_config *config)
{
	struct plain_records *records = mem_alloc_zero(sizeof(*records));
	struct work *work = mem_alloc_zero(sizeof(*work));
	records->pool = config->pool;
	records->profile = mem_strdup(config->profile);
	records->backend = mem_strdup(config->backend);
	records->agent = mem_strdup_or_null(config->agent);
	list_init(&records->rows);
	records->work = work;
	work->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = on_drop};
	work->records = records;
	work->state_folder = mem_strdup(config->state_folder);
	work->folder_fd = -1;
	list_init(&work->held);
	return records;
}

void plain_records_destroy(struct plain_records *records)
{
	if (!records) {
		return;
	}
	pool_leave(&records->work->job);
	LIST_FOR_EACH(row, &records->rows, struct row, link) {
		row_destroy(row);
	}
	free(records->profile);
	free(records->backend);
	free(records->agent);
	free(records);
}

static struct row *row_of(struct plain_records *records, const char *root)
{
	LIST_FOR_EACH(row, &records->rows, struct row, link) {
		if (strcmp(row->record.local_root, root) == 0) {
			return row;
		}
	}
	struct row *row = mem_alloc_zero(sizeof(*row));
	struct record *record = &row->record;
	record_init(record);
	record->state = RECORD_ACTIVE;
	record->profile = mem_strdup(records->profile);
	record->backend = mem_strdup(records->backend);
	record->agent = mem_strdup_or_null(records->agent);
	record->sync = mem_strdup("none");
	record->persistence = mem_strdup("none");
	record->local_root = mem_strdup(root);
	list_append(&records->rows, &row->link);
	return row;
}

static void note_change(struct row *row)
{
	char now[TIMESTAMP_SIZE];
	text_whole(row->record.updated, sizeof(row->record.updated), "%s", timestamp_now(now));
	row->is_dirty = true;
}

void plain_records_add(struct plain_records *records, char *const *roots, const char *session_id)
{
	for (size_t i = 0; roots && roots[i]; i++) {
		struct row *row = row_of(records, roots[i]);
		size_t before = row->record.session_count;
		(void)!record_add_session(&row->record, session_id); // over the limit: not shown
		if (row->record.session_count > before) {
			note_change(row);
		}
	}
	submit(records);
}

void plain_records_remove(struct plain_records *records, const char *session_id)
{
	LIST_FOR_EACH(row, &records->rows, struct row, link) {
		size_t before = row->record.session_count;
		record_remove_session(&row->record, session_id);
		if (row->record.session_count < before) {
			note_change(row);
		}
	}
	submit(records);
}
