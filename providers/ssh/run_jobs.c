/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pool.h"
#include "providers/ssh/host_impl.h"

/* What the pool does for runs: it writes the note of a host's own run, and finds earlier ones. */

/* ---- the host's own run ---- */

/* The job outlives a host that is closed meanwhile. */
struct ssh_noting {
	struct pool_job job;
	struct ssh_host *host; // until the job is left
	char *state_folder;    // owned
	struct ssh_run_note note;
	struct error err;
	bool is_written;
	bool is_needless; // the run ended before the note was written
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
	struct ssh_host *host = noting->host;
	ssh_host_enter(host);
	if (!noting->is_written) {
		log_failure(LOG_LEVEL_WARNING, &noting->err,
			"%s: %s; if this broker is killed, the next one cannot end what runs there",
			ssh_host_name(host), noting->err.text);
	}
	if (host->awaits_note) {
		ssh_host_become_ready(host);
	}
	ssh_host_leave(host);
}

static void noting_drop(struct pool_job *job)
{
	struct ssh_noting *noting = CONTAINER_OF(job, struct ssh_noting, job);
	if (noting->is_needless) {
		ssh_run_note_remove(noting->state_folder, &noting->note);
	}
	noting_free(noting);
}

void ssh_noting_start(struct ssh_host *host)
{
	const struct ssh_runs *runs = host->request.runs;
	if (!runs || !runs->state_folder || !host->control.run_folder) {
		return;
	}
	struct ssh_noting *noting = mem_alloc_zero(sizeof(*noting));
	noting->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = write_note, .done = on_noted, .drop = noting_drop};
	noting->host = host;
	noting->state_folder = mem_strdup(runs->state_folder);
	noting->note = (struct ssh_run_note){.place = mem_strdup(host->request.place),
		.folder = mem_strdup(host->control.run_folder),
		.node = mem_strdup(host->control.node ? host->control.node : ""),
		.grace_ms = ssh_longest_grace_ms(host),
		.lock_fd = -1};
	memcpy(noting->note.token, host->token, sizeof(noting->note.token));
	if (!pool_submit(host->request.context->pool, &noting->job, &noting->err)) {
		on_noted(&noting->job);
		noting_free(noting);
		return;
	}
	host->noting = noting;
}

bool ssh_noting_is_pending(const struct ssh_host *host)
{
	return host->noting && pool_has(&host->noting->job);
}

void ssh_noting_end(struct ssh_host *host, bool is_over, struct ssh_run_note *out_note)
{
	struct ssh_noting *noting = host->noting;
	*out_note = (struct ssh_run_note){.lock_fd = -1};
	host->noting = NULL;
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
