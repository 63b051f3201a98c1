/* SPDX-License-Identifier: MIT */
#include "broker/ledger/store_weight.h"

#include <ev.h>
#include <fts.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/pool.h"
#include "base/words.h"

enum { BLOCK_BYTES = 512 }; // stat(2), st_blocks

struct folder {
	char *name; // owned
	long long bytes;
};

/* A job on the pool; may outlive the object that waits for it. */
struct work {
	struct pool_job job;
	struct store_weight *weight;
	long long until_ms;
	struct folder *folders; // owned
	size_t count;
};

struct store_weight {
	struct ev_loop *loop;
	struct work *work; // owned; NULL after the timeout
	ev_timer due;      // timeout_ms, or at once if nothing can be measured
	void (*done)(void *data);
	void *data;
};

static void work_drop(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	for (size_t i = 0; i < work->count; i++) {
		free(work->folders[i].name);
	}
	free(work->folders);
	free(work);
}

/* ---- on the pool ---- */

/* A file with several names counts once per name; files of a store have one name. */
long long folder_weight(const char *folder, long long until_ms)
{
	char *const names[] = {(char *)folder, NULL};
	long long bytes = 0;
	FTS *walk = fts_open(names, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *entry;
	while (walk && bytes >= 0 && (entry = fts_read(walk)) != NULL) {
		bool is_known = entry->fts_info == FTS_F || entry->fts_info == FTS_D ||
		                entry->fts_info == FTS_SL;
		bytes += is_known ? (long long)entry->fts_statp->st_blocks * BLOCK_BYTES : 0;
		if (clock_now_ms() >= until_ms ||
			(entry->fts_level == 0 && !is_known && entry->fts_info != FTS_DP)) {
			bytes = -1;
		}
	}
	if (!walk) {
		return -1;
	}
	fts_close(walk);
	return bytes;
}

time_t folder_changed(const char *folder)
{
	char *const names[] = {(char *)folder, NULL};
	time_t latest = 0;
	FTS *walk = fts_open(names, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *entry;
	while (walk && (entry = fts_read(walk)) != NULL) {
		bool is_known = entry->fts_info == FTS_F || entry->fts_info == FTS_D;
		time_t changed = is_known ? entry->fts_statp->st_mtime : 0;
		latest = changed > latest ? changed : latest;
	}
	if (walk) {
		fts_close(walk);
	}
	return latest;
}

static void run(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	for (size_t i = 0; i < work->count; i++) {
		work->folders[i].bytes = folder_weight(work->folders[i].name, work->until_ms);
	}
}

/* ---- on the loop ---- */

static void on_measured(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	struct store_weight *weight = work->weight;
	ev_timer_stop(weight->loop, &weight->due);
	weight->done(weight->data);
}

static void let_go(struct store_weight *weight)
{
	if (weight->work) {
		pool_leave(&weight->work->job);
	}
	weight->work = NULL;
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct store_weight *weight = CONTAINER_OF(timer, struct store_weight, due);
	let_go(weight);
	weight->done(weight->data);
}

static bool has(const struct work *work, const char *name)
{
	for (size_t i = 0; i < work->count; i++) {
		if (strcmp(work->folders[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

struct store_weight *store_weight_start(struct ev_loop *loop, struct pool *pool,
	const char *const *folders, int timeout_ms, void (*done)(void *data), void *data)
{
	struct error ignored; // what is not measured stays unknown
	struct store_weight *weight = mem_alloc_zero(sizeof(*weight));
	struct work *work = mem_alloc_zero(sizeof(*work));
	work->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run, .done = on_measured, .drop = work_drop};
	work->weight = weight;
	work->until_ms = clock_now_ms() + timeout_ms;
	size_t count = words_count((char *const *)folders);
	work->folders = mem_alloc_zero((count + 1) * sizeof(*work->folders));
	for (size_t i = 0; folders[i]; i++) {
		if (!has(work, folders[i])) {
			work->folders[work->count++] = (struct folder){mem_strdup(folders[i]), -1};
		}
	}
	*weight = (struct store_weight){.loop = loop, .work = work, .done = done, .data = data};
	bool is_running = pool && work->count > 0 && pool_submit(pool, &work->job, &ignored);
	ev_timer_init(&weight->due, on_due, is_running ? timeout_ms / 1000. : 0., 0.);
	ev_timer_start(loop, &weight->due);
	return weight;
}

long long store_weight_bytes(const struct store_weight *weight, const char *folder)
{
	for (size_t i = 0; weight->work && i < weight->work->count; i++) {
		if (strcmp(weight->work->folders[i].name, folder) == 0) {
			return weight->work->folders[i].bytes;
		}
	}
	return -1;
}

void store_weight_destroy(struct store_weight *weight)
{
	if (weight) {
		ev_timer_stop(weight->loop, &weight->due);
		let_go(weight);
		free(weight);
	}
}
