/* SPDX-License-Identifier: MIT */
#include "broker/ledger/sweep.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/real_path.h"
#include "base/words.h"

/* The job that reads the records, on the pool; outlives a sweep that is destroyed. */
struct sweep_records {
	struct pool_job job;
	struct sweep *sweep;
	char *state_folder;
	int folder_fd;
	char **references; // owned
	bool is_whole; // every record was read: nobody needs a sandbox that is not in references
};

struct sweep {
	struct collect_config config;
	struct sweep_records *records; // owned
	ev_timer begin;
	struct provider_sweep *running; // owned; or NULL
};

static void records_drop(struct pool_job *job)
{
	struct sweep_records *records = CONTAINER_OF(job, struct sweep_records, job);
	free(records->state_folder);
	words_free(records->references);
	free(records);
}

static void look_at(void *data, const char *id)
{
	struct sweep_records *records = data;
	struct record record;
	struct error err;
	if (!record_load(records->folder_fd, id, &record, &err)) {
		records->is_whole = records->is_whole && err.code == ERROR_NOT_FOUND;
		return;
	}
	if (record.state != RECORD_STOPPED && record.reference) {
		words_append(&records->references, record.reference);
	}
	record_finish(&record);
}

static void on_run(struct pool_job *job)
{
	struct sweep_records *records = CONTAINER_OF(job, struct sweep_records, job);
	struct error err;
	records->is_whole = true;
	records->references = mem_alloc_zero(sizeof(*records->references));
	char *folder = path_join(records->state_folder, "sessions");
	bool is_there = access(folder, F_OK) == 0;
	free(folder);
	if (!is_there) {
		return; // no session ever began, so nobody needs a sandbox
	}
	records->folder_fd = record_folder_open(records->state_folder, &err);
	if (records->folder_fd < 0 || !record_visit(records->folder_fd, look_at, records, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "recovery: %s", err.text);
		records->is_whole = false;
	}
	fd_close(&records->folder_fd);
}

static void on_swept(void *data, const struct error *err)
{
	struct sweep *sweep = data;
	sweep->running = NULL;
}

static void on_looked(struct pool_job *job)
{
	struct sweep_records *records = CONTAINER_OF(job, struct sweep_records, job);
	struct sweep *sweep = records->sweep;
	struct error err;
	const struct profile *profile = sweep->config.profile;
	struct sandbox_request request = {.profile = profile->name, .settings = &profile->settings};
	if (!records->is_whole) {
		return; // the unreadable one was logged
	}
	sweep->running = provider_sweep(sweep->config.provider, &request,
		(const char *const *)records->references, on_swept, sweep, &err);
	if (!sweep->running) {
		log_failure(LOG_LEVEL_WARNING, &err, "recovery: %s", err.text);
	}
}

static void on_begin(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct sweep *sweep = CONTAINER_OF(timer, struct sweep, begin);
	struct error err;
	if (!pool_submit(sweep->config.pool, &sweep->records->job, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "recovery: %s", err.text);
	}
}

struct sweep *sweep_start(const struct collect_config *config, int delay_ms)
{
	if (!provider_can_sweep(config->provider)) {
		return NULL;
	}
	struct sweep *sweep = mem_alloc_zero(sizeof(*sweep));
	struct sweep_records *records = mem_alloc_zero(sizeof(*records));
	sweep->config = *config;
	sweep->records = records;
	records->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_looked, .drop = records_drop};
	records->sweep = sweep;
	records->folder_fd = -1;
	records->state_folder = mem_strdup(config->state_folder);
	ev_timer_init(&sweep->begin, on_begin, delay_ms / 1000., 0.);
	ev_timer_start(config->loop, &sweep->begin);
	return sweep;
}

void sweep_destroy(struct sweep *sweep)
{
	if (!sweep) {
		return;
	}
	ev_timer_stop(sweep->config.loop, &sweep->begin);
	provider_sweep_cancel(sweep->running);
	pool_leave(&sweep->records->job);
	free(sweep);
}
