/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/real_path.h"
#include "base/words.h"
#include "broker/keeper_impl.h"
#include "broker/timestamp.h"

/* Directories that are about to become roots of the sandbox: a record of each says so before. */

struct announced {
	struct list link; // keeper.announced
	char *name;       // owned; as the caller has written it
	struct record record;
};

/* Directories that are being announced; their records are written one after the other. */
struct announcing {
	struct list link; // keeper.announcing
	struct pool_job job;
	struct keeper *keeper; // NULL: nobody waits for it
	char **names, **real;  // owned, NULL-terminated
	bool is_named;         // the pool is done with it
	size_t next;
	const char *in_hand; // the real name of the one that is being saved
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

static void announcing_destroy(struct announcing *announcing)
{
	list_remove(&announcing->link);
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
	announcing_destroy(announcing);
	done(data, err);
}

/* The record of the directory in hand was written, or could not be: then there is none. */
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
	if (err) {
		announcing_end(announcing, err);
	} else {
		announce_next(announcing);
	}
}

static void announce(struct announcing *announcing, const char *name, const char *real)
{
	struct keeper *keeper = announcing->keeper;
	struct announced *announced = mem_alloc_zero(sizeof(*announced));
	announced->name = mem_strdup(name);
	keeper_init_record(keeper, &announced->record, real);
	list_append(&keeper->announced, &announced->link);
	announcing->in_hand = real;
	record_saver_add(keeper->saver, &announced->record, (size_t)keeper->config.max_sessions,
		on_saved, announcing);
}

static void announce_next(struct announcing *announcing)
{
	const char *real;
	while ((real = announcing->real[announcing->next])) {
		const char *name = announcing->names[announcing->next++];
		if (!keeper_has_root(announcing->keeper, real) && !find(announcing->keeper, real)) {
			announce(announcing, name, real);
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
	struct announcing *announcing = CONTAINER_OF(job, struct announcing, job);
	announcing->is_named = true;
	if (announcing->keeper) {
		announce_next(announcing);
	} else {
		announcing_destroy(announcing);
	}
}

bool keeper_announce(struct keeper *keeper, char *const *names, sandbox_done *done, void *data)
{
	struct error err;
	if (!names[0]) {
		return false;
	}
	struct announcing *announcing = mem_alloc_zero(sizeof(*announcing));
	announcing->job =
		(struct pool_job){.lane = POOL_LANE_WORK, .run = on_run, .done = on_named};
	announcing->keeper = keeper;
	announcing->done = done;
	announcing->data = data;
	words_append_all(&announcing->names, (const char *const *)names);
	list_append(&keeper->announcing, &announcing->link);
	if (!pool_submit(keeper->config.pool, &announcing->job, &err)) {
		announcing_destroy(announcing);
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

/* ---- what becomes of it ---- */

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
		log_error("%s", err->text);
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
		snprintf(record->updated, sizeof(record->updated), "%s", timestamp_now(now));
		record_saver_save(keeper->saver, record, on_renounced, keeper);
		keeper_tell_state(keeper, record, record_state_name(RECORD_CREATING));
		announced_destroy(announced);
	}
}

void keeper_drop_announced(struct keeper *keeper)
{
	LIST_FOR_EACH(announced, &keeper->announced, struct announced, link) {
		announced_destroy(announced);
	}
	LIST_FOR_EACH(announcing, &keeper->announcing, struct announcing, link) {
		list_remove(&announcing->link);
		announcing->keeper = NULL;
		if (announcing->is_named || pool_cancel(keeper->config.pool, &announcing->job)) {
			announcing_destroy(announcing);
		}
	}
}
