/* SPDX-License-Identifier: MIT */
#include "providers/daytona/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/soon.h"
#include "base/words.h"
#include "providers/daytona/box.h"
#include "providers/daytona/claim.h"
#include "providers/daytona/note.h"
#include "providers/daytona/opening.h"

enum { SWEPT_MAX = 16 }; // at once; the rest comes next time

/* Reads the notes on the pool; outlives a sweep that is cancelled. */
struct sweep_scan {
	struct pool_job job;
	struct daytona_sweep *sweep;
	char *state_folder, *profile, *api; // owned; the first may be NULL
	char **kept;                        // owned
	char **found;                       // owned; names of sandboxes to delete
};

struct daytona_sweep {
	struct provider_sweep sweep;
	const struct provider_context *context;
	struct daytona_shared *shared;
	provider_swept *done;
	void *data;
	struct daytona_profile profile;
	struct daytona_opening *opening; // owned; or NULL
	struct daytona_api *api;         // owned; NULL until a sandbox was found
	struct sweep_scan *scan;         // owned
	size_t next;
	struct daytona_claim *claim; // of the current sandbox
	struct daytona_box *box;     // of the current sandbox
	struct soon soon; // goes on with the next one, once no callback of this one is running
};

static void scan_drop(struct pool_job *job)
{
	struct sweep_scan *scan = CONTAINER_OF(job, struct sweep_scan, job);
	free(scan->state_folder);
	free(scan->profile);
	free(scan->api);
	words_free(scan->kept);
	words_free(scan->found);
	free(scan);
}

/* ---- the notes, on the pool ---- */

static bool is_kept(const struct sweep_scan *scan, const char *name)
{
	for (char **kept = scan->kept; kept && *kept; kept++) {
		if (strcmp(*kept, name) == 0) {
			return true;
		}
	}
	return false;
}

static void on_note(void *data, const char *name)
{
	struct sweep_scan *scan = data;
	struct daytona_note note;
	struct error ignored;
	if (words_count(scan->found) == SWEPT_MAX || is_kept(scan, name) ||
		daytona_note_is_held(scan->state_folder, name) ||
		!daytona_note_read(scan->state_folder, name, &note, &ignored)) {
		return;
	}
	if (note.is_transient && strcmp(note.profile, scan->profile) == 0 &&
		strcmp(note.mark.api, scan->api) == 0) {
		words_append(&scan->found, name);
	}
	daytona_note_finish(&note);
}

static void on_run(struct pool_job *job)
{
	struct sweep_scan *scan = CONTAINER_OF(job, struct sweep_scan, job);
	struct error err;
	if (!daytona_note_visit(scan->state_folder, on_note, scan, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "recovery: %s", err.text);
	}
}

/* ---- one sandbox after the other ---- */

static void drop_one(struct daytona_sweep *self)
{
	daytona_box_destroy(self->box);
	daytona_claim_destroy(self->claim);
	self->box = NULL;
	self->claim = NULL;
}

static void go_on(struct daytona_sweep *self)
{
	self->next++;
	soon_start(&self->soon);
}

static void on_forgotten(void *data, const struct error *err)
{
	struct daytona_sweep *self = data;
	log_info("recovery: deleting sandbox %s, which was not used and whose "
		 "broker is gone",
		self->scan->found[self->next]);
	go_on(self);
}

static void on_deleted(void *data, const struct error *err)
{
	struct daytona_sweep *self = data;
	if (err) {
		log_failure(LOG_LEVEL_WARNING, err,
			"recovery: sandbox %s of an ended broker is not deleted: %s",
			self->scan->found[self->next], err->text);
		go_on(self);
	} else {
		daytona_claim_forget(self->claim, on_forgotten);
	}
}

static void on_alone(void *data, const struct error *err)
{
	struct daytona_sweep *self = data;
	if (err) {
		go_on(self); // another broker uses it by now
		return;
	}
	self->box = daytona_box_create(&(struct daytona_box_config){
		.loop = self->context->loop,
		.api = self->api,
		.profile = &self->profile,
		.identity = daytona_claim_identity(self->claim),
		.name = self->scan->found[self->next],
		.others = daytona_claim_others(self->claim),
		.data = self,
	});
	daytona_box_delete(self->box, on_deleted);
}

static void on_claimed(void *data, const struct error *err)
{
	struct daytona_sweep *self = data;
	if (err) {
		go_on(self);
	} else {
		daytona_claim_take_alone(self->claim, on_alone);
	}
}

static void end(struct daytona_sweep *self, const struct error *err)
{
	provider_swept *done = self->done;
	void *done_data = self->data;
	daytona_sweep_cancel(&self->sweep);
	done(done_data, err);
}

static void on_soon(struct soon *soon)
{
	struct daytona_sweep *self = CONTAINER_OF(soon, struct daytona_sweep, soon);
	drop_one(self);
	if (self->next >= words_count(self->scan->found)) {
		end(self, NULL);
		return;
	}
	struct daytona_account account;
	daytona_profile_account(&self->profile, &account);
	self->claim = daytona_claim_create(&(struct daytona_claim_config){
		.context = self->context,
		.profile = self->profile.name,
		.account = &account,
		.reference = self->scan->found[self->next],
		.is_transient = true,
		.data = self,
	});
	daytona_account_finish(&account);
	daytona_claim_take(self->claim, NULL, on_claimed);
}

static void on_opened(void *data, struct daytona_api *api, const struct error *err)
{
	struct daytona_sweep *self = data;
	self->opening = NULL;
	self->api = api;
	if (err) {
		struct error copy = *err;
		log_failure(LOG_LEVEL_WARNING, &copy,
			"recovery: sandboxes of ended brokers at Daytona are not deleted: "
			"profile \"%s\": %s",
			self->profile.name, copy.text);
		end(self, &copy);
	} else {
		soon_start(&self->soon);
	}
}

/* Asks for the key only if something was found, because its command may wait for a user. */
static void on_scanned(struct pool_job *job)
{
	struct daytona_sweep *self = CONTAINER_OF(job, struct sweep_scan, job)->sweep;
	struct error err;
	if (words_count(self->scan->found) == 0) {
		end(self, NULL);
		return;
	}
	self->opening = daytona_opening_start(self->shared, &self->profile, on_opened, self, &err);
	if (!self->opening) {
		on_opened(self, NULL, &err);
	}
}

/* ---- for the caller ---- */

void daytona_sweep_cancel(struct provider_sweep *sweep)
{
	struct daytona_sweep *self = CONTAINER_OF(sweep, struct daytona_sweep, sweep);
	soon_stop(&self->soon);
	drop_one(self);
	daytona_opening_cancel(self->opening);
	daytona_api_destroy(self->api);
	daytona_profile_finish(&self->profile);
	pool_leave(&self->scan->job);
	free(self);
}

struct provider_sweep *daytona_sweep(struct provider *provider, struct daytona_shared *shared,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err)
{
	struct daytona_sweep *self = mem_alloc_zero(sizeof(*self));
	struct sweep_scan *scan = mem_alloc_zero(sizeof(*scan));
	self->sweep.provider = provider;
	self->context = shared->context;
	self->shared = shared;
	self->done = done;
	self->data = data;
	self->scan = scan;
	soon_init(&self->soon, self->context->loop, on_soon);
	scan->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_scanned, .drop = scan_drop};
	scan->sweep = self;
	scan->state_folder = mem_strdup_or_null(self->context->state_folder);
	scan->profile = mem_strdup(request->profile);
	words_append_all(&scan->kept, kept);
	if (!daytona_profile_read(&self->profile, request->profile, request->settings,
		    self->context->environment, err)) {
		daytona_sweep_cancel(&self->sweep);
		return NULL;
	}
	scan->api = mem_strdup(self->profile.api_url);
	if (!pool_submit(self->context->pool, &scan->job, err)) {
		daytona_sweep_cancel(&self->sweep);
		return NULL;
	}
	return &self->sweep;
}
