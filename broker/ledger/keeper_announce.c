/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "base/words.h"
#include "broker/ledger/keeper_impl.h"
#include "broker/ledger/state_folder.h"
#include "sync/store_lock.h"

/*
 * Directories that are about to become roots of the sandbox: a record of each says so first. It is
 * written while the store's lock is held. A broker that ends such a sandbox holds the same lock
 * while it checks whether anybody uses the sandbox, and until the sandbox is gone (keeper_end.c).
 * So either the sandbox is gone before this, or it stays.
 */
enum { LOCK_LOOK_MS = 50 };

struct announced {
	struct list link; // keeper.announced
	char *name;       // owned; as the caller wrote it
	struct record record;
};

/* Directories that are being announced; their records are saved one after the other. */
struct announcing {
	struct list link; // keeper.announcing
	struct pool_job job;
	struct ev_loop *loop;
	struct keeper *keeper;
	char **names, **real; // owned, NULL-terminated
	size_t next;
	const char *name, *in_hand; // the current directory, and its real path
	int lock_fd;                // of its store; -1: not open
	ev_timer look;              // checks whether another broker has released the lock
	long long lock_deadline_ms; // of clock_now_ms
	bool is_hurried;            // does not wait for it any longer
	sandbox_done *done;
	void *data;
};

static void announced_destroy(struct announced *announced)
{
	list_remove(&announced->link);
	record_finish(&announced->record);
	free(announced->name);
	free(announced);
}

static void announcing_drop(struct pool_job *job)
{
	struct announcing *announcing = CONTAINER_OF(job, struct announcing, job);
	list_remove(&announcing->link);
	ev_timer_stop(announcing->loop, &announcing->look);
	fd_close(&announcing->lock_fd);
	words_free(announcing->names);
	words_free(announcing->real);
	free(announcing);
}

static struct announced *find(struct keeper *keeper, const char *real)
{
	LIST_FOR_EACH(announced, &keeper->announced, struct announced, link) {
		if (strcmp(announced->record.local_root, real) == 0) {
			return announced;
		}
	}
	return NULL;
}

/* ---- one after the other ---- */

static void announce_next(struct announcing *announcing);

static void announcing_end(struct announcing *announcing, const struct error *err)
{
	sandbox_done *done = announcing->done;
	void *data = announcing->data;
	announcing_drop(&announcing->job);
	done(data, err);
}

/* The record of the current directory was saved, or could not be; then there is none. */
static void note_saved(struct announcing *announcing, const struct error *err)
{
	struct announced *announced = find(announcing->keeper, announcing->in_hand);
	if (announced && err) {
		announced_destroy(announced);
	} else if (announced) {
		keeper_tell_state(announcing->keeper, &announced->record, NULL);
	}
}

static void on_saved(void *data, const struct error *err)
{
	struct announcing *announcing = data;
	note_saved(announcing, err);
	fd_close(&announcing->lock_fd);
	if (err) {
		announcing_end(announcing, err);
	} else {
		announce_next(announcing);
	}
}

/* Another session of this keeper may have announced it while this one waited. */
static bool is_known(struct announcing *announcing, const char *real)
{
	return keeper_has_root(announcing->keeper, real) || find(announcing->keeper, real);
}

static void announce(struct announcing *announcing)
{
	struct keeper *keeper = announcing->keeper;
	if (is_known(announcing, announcing->in_hand)) {
		fd_close(&announcing->lock_fd);
		announce_next(announcing);
		return;
	}
	struct announced *announced = mem_alloc_zero(sizeof(*announced));
	announced->name = mem_strdup(announcing->name);
	keeper_init_record(keeper, &announced->record, announcing->in_hand);
	list_append(&keeper->announced, &announced->link);
	record_saver_add(keeper->saver, &announced->record, (size_t)keeper->config.max_sessions,
		on_saved, announcing);
}

static void fail_locked(struct announcing *announcing)
{
	struct error err;
	if (announcing->is_hurried) {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another acp-broker is syncing %s, and this broker is about to end",
			announcing->in_hand);
	} else {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another acp-broker has been syncing %s for %d s (sync-lock-timeout)",
			announcing->in_hand,
			announcing->keeper->config.settings->lock_timeout_ms / 1000);
	}
	announcing_end(announcing, &err);
}

static void lock(struct announcing *announcing)
{
	if (announcing->lock_fd < 0 || store_lock_try(announcing->lock_fd)) {
		ev_timer_stop(announcing->loop, &announcing->look);
		announce(announcing);
	} else if (announcing->is_hurried || clock_now_ms() >= announcing->lock_deadline_ms) {
		fail_locked(announcing);
	} else {
		if (!ev_is_active(&announcing->look)) {
			log_info("waiting for another acp-broker that is syncing %s",
				announcing->in_hand);
		}
		ev_timer_again(announcing->loop, &announcing->look);
	}
}

static void on_look(struct ev_loop *loop, ev_timer *timer, int events)
{
	lock(CONTAINER_OF(timer, struct announcing, look));
}

static void lock_store(struct announcing *announcing)
{
	const struct keeper_config *config = &announcing->keeper->config;
	struct error err;
	char *folder = state_folder_store(config->state_folder, announcing->in_hand);
	bool ok = store_lock_find(folder, &announcing->lock_fd, &err);
	free(folder);
	if (!ok) {
		announcing_end(announcing, &err);
		return;
	}
	announcing->lock_deadline_ms = clock_now_ms() + config->settings->lock_timeout_ms;
	lock(announcing);
}

static void announce_next(struct announcing *announcing)
{
	const char *real;
	while ((real = announcing->real[announcing->next])) {
		announcing->name = announcing->names[announcing->next++];
		if (!is_known(announcing, real)) {
			announcing->in_hand = real;
			lock_store(announcing);
			return;
		}
	}
	announcing_end(announcing, NULL);
}

static void on_run(struct pool_job *job)
{
	struct announcing *announcing = CONTAINER_OF(job, struct announcing, job);
	for (size_t i = 0; announcing->names[i]; i++) {
		char *real = real_path(announcing->names[i]);
		words_append(&announcing->real, real);
		free(real);
	}
}

static void on_named(struct pool_job *job)
{
	announce_next(CONTAINER_OF(job, struct announcing, job));
}

bool keeper_announce(struct keeper *keeper, char *const *names, sandbox_done *done, void *data)
{
	struct error err;
	if (!names[0]) {
		return false;
	}
	struct announcing *announcing = mem_alloc_zero(sizeof(*announcing));
	announcing->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_named, .drop = announcing_drop};
	announcing->loop = keeper->config.loop;
	announcing->keeper = keeper;
	announcing->lock_fd = -1;
	ev_init(&announcing->look, on_look);
	announcing->look.repeat = LOCK_LOOK_MS / 1000.;
	announcing->done = done;
	announcing->data = data;
	words_append_all(&announcing->names, (const char *const *)names);
	list_append(&keeper->announcing, &announcing->link);
	if (!pool_submit(keeper->config.pool, &announcing->job, &err)) {
		announcing_drop(&announcing->job);
		return false;
	}
	return true;
}

void keeper_adopt(struct keeper *keeper, struct record *record, int lock_fd)
{
	struct announced *announced = mem_alloc_zero(sizeof(*announced));
	announced->name = mem_strdup(record->local_root);
	announced->record = *record;
	*record = (struct record){0};
	list_append(&keeper->announced, &announced->link);
	record_saver_adopt(keeper->saver, announced->record.id, lock_fd);
}

/* ---- the results ---- */

bool keeper_take_announced(struct keeper *keeper, const char *real, struct record *out_record)
{
	struct announced *announced = find(keeper, real);
	if (!announced) {
		return false;
	}
	*out_record = announced->record;
	announced->record = (struct record){0};
	announced_destroy(announced);
	return true;
}

static void on_renounced(void *data, const struct error *err)
{
	if (err) {
		log_failure(LOG_LEVEL_ERROR, err, "%s", err->text);
	}
}

static bool is_among(char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0) {
		names++;
	}
	return *names != NULL;
}

void keeper_renounce(struct keeper *keeper, char *const *names, const struct error *err)
{
	char now[TIMESTAMP_SIZE];
	LIST_FOR_EACH(announced, &keeper->announced, struct announced, link) {
		struct record *record = &announced->record;
		if (!is_among(names, announced->name)) {
			continue;
		}
		record->state = RECORD_STOPPED;
		record->error = mem_strdup(err->text);
		text_whole(record->updated, sizeof(record->updated), "%s", timestamp_now(now));
		record_saver_save(keeper->saver, record, on_renounced, keeper);
		keeper_tell_state(keeper, record, record_state_name(RECORD_CREATING));
		announced_destroy(announced);
	}
}

void keeper_hurry_announcing(struct keeper *keeper)
{
	LIST_FOR_EACH(announcing, &keeper->announcing, struct announcing, link) {
		announcing->is_hurried = true; // the next look at the lock is the last
	}
}

void keeper_drop_announced(struct keeper *keeper)
{
	LIST_FOR_EACH(announced, &keeper->announced, struct announced, link) {
		announced_destroy(announced);
	}
	LIST_FOR_EACH(announcing, &keeper->announcing, struct announcing, link) {
		list_remove(&announcing->link);
		pool_leave(&announcing->job);
	}
}
