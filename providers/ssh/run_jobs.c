/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/pool.h"
#include "providers/ssh/runs.h"

/* What the pool does for runs: it writes the note of a broker's own run, and finds earlier ones. */

/* ---- a run of this broker ---- */

/* The job outlives a sandbox that is closed meanwhile. */
struct ssh_noting {
	struct pool_job job;
	char *state_folder; // owned
	struct ssh_run_note note;
	struct error err;
	bool is_written;
	bool is_needless; // the run ended before the note was written
	ssh_noted *done;
	void *data;
};

static void noting_free(struct ssh_noting *noting)
{
	ssh_run_note_finish(&noting->note);
	free(noting->state_folder);
	free(noting);
}

static void write_note(struct pool_job *job)
{
	struct ssh_noting *noting = CONTAINER_OF(job, struct ssh_noting, job);
	noting->is_written = ssh_run_note_write(noting->state_folder, &noting->note, &noting->err);
}

static void on_noted(struct pool_job *job)
{
	struct ssh_noting *noting = CONTAINER_OF(job, struct ssh_noting, job);
	noting->done(noting->data, noting->is_written ? NULL : &noting->err);
}

static void noting_drop(struct pool_job *job)
{
	struct ssh_noting *noting = CONTAINER_OF(job, struct ssh_noting, job);
	if (noting->is_needless) {
		ssh_run_note_remove(noting->state_folder, &noting->note);
	}
	noting_free(noting);
}

struct ssh_noting *ssh_noting_start(struct pool *pool, const struct ssh_runs *runs,
	struct ssh_run_note *note, ssh_noted *done, void *data, struct error *err)
{
	struct ssh_noting *noting = mem_alloc_zero(sizeof(*noting));
	noting->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = write_note, .done = on_noted, .drop = noting_drop};
	noting->state_folder = mem_strdup(runs->state_folder);
	noting->note = *note;
	*note = (struct ssh_run_note){.lock_fd = -1};
	noting->done = done;
	noting->data = data;
	if (!pool_submit(pool, &noting->job, err)) {
		noting_free(noting);
		return NULL;
	}
	return noting;
}

bool ssh_noting_is_pending(const struct ssh_noting *noting)
{
	return noting && pool_has(&noting->job);
}

void ssh_noting_end(struct ssh_noting *noting, bool is_over, struct ssh_run_note *out_note)
{
	*out_note = (struct ssh_run_note){.lock_fd = -1};
	if (!noting) {
		return;
	}
	noting->is_needless = is_over;
	if (!pool_has(&noting->job) && !is_over) {
		*out_note = noting->note;
		noting->note = (struct ssh_run_note){.lock_fd = -1};
	}
	pool_leave(&noting->job);
}

/* ---- runs of earlier brokers ---- */

struct ssh_runs_look {
	struct pool_job job;
	struct ssh_runs *runs;
	char *state_folder, *place; // owned
	struct ssh_run_note *found; // owned
	size_t count;
	void (*done)(void *data);
	void *data;
};

static void find_notes(struct pool_job *job)
{
	struct ssh_runs_look *look = CONTAINER_OF(job, struct ssh_runs_look, job);
	look->found = ssh_run_notes_find(look->state_folder, look->place, &look->count);
}

static void look_drop(struct pool_job *job)
{
	struct ssh_runs_look *look = CONTAINER_OF(job, struct ssh_runs_look, job);
	for (size_t i = 0; i < look->count; i++) {
		ssh_run_note_finish(&look->found[i]);
	}
	free(look->found);
	free(look->state_folder);
	free(look->place);
	free(look);
}

static void on_looked(struct pool_job *job)
{
	struct ssh_runs_look *look = CONTAINER_OF(job, struct ssh_runs_look, job);
	void (*done)(void *data) = look->done;
	void *data = look->data;
	for (size_t i = 0; i < look->count; i++) {
		ssh_runs_adopt(look->runs, &look->found[i]);
	}
	look_drop(job);
	done(data);
}

struct ssh_runs_look *ssh_runs_look_start(struct pool *pool, struct ssh_runs *runs,
	const char *place, void (*done)(void *data), void *data, struct error *err)
{
	struct ssh_runs_look *look = mem_alloc_zero(sizeof(*look));
	look->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = find_notes, .done = on_looked, .drop = look_drop};
	look->runs = runs;
	look->state_folder = mem_strdup(runs->state_folder);
	look->place = mem_strdup(place);
	look->done = done;
	look->data = data;
	if (!pool_submit(pool, &look->job, err)) {
		look_drop(&look->job);
		return NULL;
	}
	return look;
}

void ssh_runs_look_cancel(struct ssh_runs_look *look)
{
	if (look) {
		pool_leave(&look->job);
	}
}
