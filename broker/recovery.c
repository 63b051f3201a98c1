/* SPDX-License-Identifier: MIT */
#include "broker/recovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"

struct found {
	char id[RECORD_ID_SIZE];
	char updated[32];
};

/* The look at the records; outlives the recovery where that is destroyed. */
struct look {
	struct pool_job job;
	struct recovery *recovery; // NULL: nobody waits for it
	char *state_folder, *profile;
	const char *backend; // static
	int folder_fd;
	struct found *found; // owned
	size_t count;
};

struct recovery {
	struct collect_config config;
	ev_timer begin;
	ev_timer due; // recovery-timeout
	int timeout_ms;
	struct look *look; // owned
	bool is_looking;
	bool is_over; // nothing more is begun
	size_t next;
	struct collect *collect; // owned; the one in hand
};

static void look_free(struct look *look)
{
	free(look->state_folder);
	free(look->profile);
	free(look->found);
	free(look);
}

/* ---- the records, on the pool ---- */

static void look_at(void *data, const char *id)
{
	struct look *look = data;
	struct record record;
	struct error err;
	if (!record_load(look->folder_fd, id, &record, &err)) {
		if (err.code != ERROR_NOT_FOUND) {
			log_warning("recovery: %s; it stays as it is", err.text);
		}
		return;
	}
	if (record.state != RECORD_STOPPED && strcmp(record.profile, look->profile) == 0 &&
		strcmp(record.backend, look->backend) == 0) {
		look->found = mem_realloc(look->found, (look->count + 1) * sizeof(*look->found));
		struct found *found = &look->found[look->count++];
		memcpy(found->id, record.id, sizeof(found->id));
		memcpy(found->updated, record.updated, sizeof(found->updated));
	}
	record_finish(&record);
}

static int compare_newest(const void *a, const void *b)
{
	const struct found *x = a;
	const struct found *y = b;
	return strcmp(y->updated, x->updated);
}

static void run_look(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	struct error err;
	look->folder_fd = record_folder_open(look->state_folder, &err);
	if (look->folder_fd < 0 || !record_visit(look->folder_fd, look_at, look, &err)) {
		log_warning("recovery: %s", err.text);
	}
	fd_close(&look->folder_fd);
	if (look->count > 1) {
		qsort(look->found, look->count, sizeof(*look->found), compare_newest);
	}
}

/* ---- one after the other ---- */

static void stop(struct recovery *recovery)
{
	recovery->is_over = true;
	ev_timer_stop(recovery->config.loop, &recovery->begin);
	ev_timer_stop(recovery->config.loop, &recovery->due);
	collect_destroy(recovery->collect);
	recovery->collect = NULL;
}

static void collect_next(struct recovery *recovery);

static void on_collected(void *data, enum collect_outcome outcome, const struct record *record,
	const struct error *err)
{
	struct recovery *recovery = data;
	const struct found *found = &recovery->look->found[recovery->next++];
	if (outcome == COLLECT_DONE) {
		log_info("recovery: session %s of %s, whose broker is gone, is collected",
			found->id, record->local_root);
	} else if (outcome == COLLECT_FAILED) {
		log_error("recovery: session %s%s%s, whose broker is gone, is not collected: %s; "
			  "the sandbox stays, and the next start tries again (acp-broker sessions)",
			found->id, record ? " of " : "", record ? record->local_root : "",
			err->text);
	}
	collect_destroy(recovery->collect);
	recovery->collect = NULL;
	collect_next(recovery);
}

static void collect_next(struct recovery *recovery)
{
	const struct look *look = recovery->look;
	if (recovery->is_over || recovery->next == look->count ||
		recovery->next == RECOVERY_RECORDS_MAX) {
		stop(recovery);
		return;
	}
	struct collect_config config = recovery->config;
	config.is_discarded = false;
	config.done = on_collected;
	config.data = recovery;
	recovery->collect = collect_start(&config, look->found[recovery->next].id);
}

static void on_looked(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	if (!look->recovery) {
		look_free(look);
		return;
	}
	look->recovery->is_looking = false;
	collect_next(look->recovery);
}

static void on_begin(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct recovery *recovery = CONTAINER_OF(timer, struct recovery, begin);
	struct error err;
	ev_timer_set(&recovery->due, recovery->timeout_ms / 1000., 0.);
	ev_timer_start(loop, &recovery->due);
	recovery->is_looking = pool_submit(recovery->config.pool, &recovery->look->job, &err);
	if (!recovery->is_looking) {
		log_warning("recovery: %s", err.text);
		stop(recovery);
	}
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct recovery *recovery = CONTAINER_OF(timer, struct recovery, due);
	const struct look *look = recovery->look;
	log_warning("recovery: not done within %d s (recovery-timeout); %zu sessions are left for "
		    "the next start, or for acp-broker sessions collect",
		recovery->timeout_ms / 1000,
		recovery->is_looking ? (size_t)0 : look->count - recovery->next);
	stop(recovery);
}

/* ---- life ---- */

struct recovery *recovery_start(const struct collect_config *config, int delay_ms, int timeout_ms)
{
	struct recovery *recovery = mem_alloc_zero(sizeof(*recovery));
	struct look *look = mem_alloc_zero(sizeof(*look));
	recovery->config = *config;
	recovery->timeout_ms = timeout_ms;
	recovery->look = look;
	look->job = (struct pool_job){.lane = POOL_LANE_WORK, .run = run_look, .done = on_looked};
	look->recovery = recovery;
	look->state_folder = mem_strdup(config->state_folder);
	look->profile = mem_strdup(config->profile->name);
	look->backend = backend_name(config->profile->backend);
	look->folder_fd = -1;
	ev_init(&recovery->due, on_due);
	ev_timer_init(&recovery->begin, on_begin, delay_ms / 1000., 0.);
	ev_timer_start(config->loop, &recovery->begin);
	return recovery;
}

void recovery_destroy(struct recovery *recovery)
{
	if (!recovery) {
		return;
	}
	stop(recovery);
	recovery->look->recovery = NULL;
	if (!recovery->is_looking || pool_cancel(recovery->config.pool, &recovery->look->job)) {
		look_free(recovery->look);
	}
	free(recovery);
}
