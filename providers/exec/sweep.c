/* SPDX-License-Identifier: MIT */
#include "providers/exec/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/soon.h"
#include "base/words.h"
#include "providers/exec/instance.h"

enum { SWEPT_MAX = 16 }; // in one sweep; the next one does the rest

/* The scan of the notes, on the pool. It outlives a sweep that is cancelled. */
struct sweep_scan {
	struct pool_job job;
	struct exec_sweep *sweep;
	struct provider_context context; // only its folder
	const struct exec_platform *platform;
	char *state_folder, *profile; // owned; the first may be NULL
	char **kept;                  // owned
	char **found;                 // owned; the names to be removed
};

struct exec_sweep {
	struct provider_sweep sweep;
	const struct provider_context *context;
	provider_swept *done;
	void *data;
	struct exec_profile profile;
	struct sweep_scan *scan; // owned
	size_t next;
	struct exec_instance *instance; // the one that we remove now
	struct soon soon;               // goes on to the next one outside the callbacks of this one
};

static void scan_drop(struct pool_job *job)
{
	struct sweep_scan *scan = CONTAINER_OF(job, struct sweep_scan, job);
	free(scan->state_folder);
	free(scan->profile);
	words_free(scan->kept);
	words_free(scan->found);
	free(scan);
}

/* ---- the notes, on the pool ---- */

static void on_note(void *data, const char *name)
{
	struct sweep_scan *scan = data;
	const struct notes notes = exec_notes(&scan->context, scan->platform);
	struct exec_note note;
	struct error ignored;
	if (words_count(scan->found) == SWEPT_MAX ||
		words_contain((const char *const *)scan->kept, name) ||
		notes_is_held(&notes, name) || !exec_note_read(&notes, name, &note, &ignored)) {
		return;
	}
	if (note.is_transient && strcmp(note.profile, scan->profile) == 0) {
		words_append(&scan->found, name);
	}
	exec_note_finish(&note);
}

static void on_run(struct pool_job *job)
{
	struct sweep_scan *scan = CONTAINER_OF(job, struct sweep_scan, job);
	const struct notes notes = exec_notes(&scan->context, scan->platform);
	struct error err;
	if (!notes_visit(&notes, on_note, scan, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "recovery: %s", err.text);
	}
}

/* ---- one after the other ---- */

static void on_removed(void *data, const struct error *err)
{
	struct exec_sweep *self = data;
	const char *name = self->scan->found[self->next];
	if (err) {
		log_failure(LOG_LEVEL_WARNING, err,
			"recovery: sandbox %s of an ended broker is not destroyed: %s", name,
			err->text);
	} else {
		log_info("recovery: destroyed sandbox %s, which was not used and whose broker is "
			 "gone",
			name);
	}
	self->next++;
	soon_start(&self->soon);
}

static void on_opened(void *data, const struct error *err)
{
	struct exec_sweep *self = data;
	if (err) {
		self->next++; // a broker may have taken it meanwhile
		soon_start(&self->soon);
	} else {
		exec_instance_remove(self->instance, on_removed);
	}
}

static void on_soon(struct soon *soon)
{
	struct exec_sweep *self = CONTAINER_OF(soon, struct exec_sweep, soon);
	exec_instance_destroy(self->instance);
	self->instance = NULL;
	if (self->next >= words_count(self->scan->found)) {
		provider_swept *done = self->done;
		void *data = self->data;
		exec_sweep_cancel(&self->sweep);
		done(data, NULL);
		return;
	}
	self->instance =
		exec_instance_create(&(struct exec_instance_config){.context = self->context,
			.profile = &self->profile,
			.reference = self->scan->found[self->next],
			.data = self});
	exec_instance_open(self->instance, on_opened);
}

static void on_scanned(struct pool_job *job)
{
	soon_start(&CONTAINER_OF(job, struct sweep_scan, job)->sweep->soon);
}

/* ---- for the caller ---- */

void exec_sweep_cancel(struct provider_sweep *sweep)
{
	struct exec_sweep *self = CONTAINER_OF(sweep, struct exec_sweep, sweep);
	soon_stop(&self->soon);
	exec_instance_destroy(self->instance);
	exec_profile_finish(&self->profile);
	pool_leave(&self->scan->job);
	free(self);
}

struct provider_sweep *exec_sweep(struct provider *provider, const struct exec_shared *shared,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err)
{
	struct exec_sweep *self = mem_alloc_zero(sizeof(*self));
	struct sweep_scan *scan = mem_alloc_zero(sizeof(*scan));
	self->sweep.provider = provider;
	self->context = shared->context;
	self->done = done;
	self->data = data;
	self->scan = scan;
	soon_init(&self->soon, shared->context->loop, on_soon);
	scan->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_scanned, .drop = scan_drop};
	scan->sweep = self;
	scan->platform = shared->platform;
	scan->state_folder = mem_strdup_or_null(shared->context->state_folder);
	scan->context.state_folder = scan->state_folder;
	scan->profile = mem_strdup(request->profile);
	words_append_all(&scan->kept, kept);
	if (!exec_profile_read(&self->profile, shared->platform, request->profile,
		    request->settings, shared->context, err) ||
		!pool_submit(shared->context->pool, &scan->job, err)) {
		exec_sweep_cancel(&self->sweep);
		return NULL;
	}
	return &self->sweep;
}
