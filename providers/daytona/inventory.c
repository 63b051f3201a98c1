/* SPDX-License-Identifier: MIT */
#include "providers/daytona/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "providers/daytona/box.h"
#include "providers/daytona/claim.h"
#include "providers/daytona/note.h"
#include "providers/daytona/opening.h"
#include "providers/daytona/states.h"

/* A listed sandbox; the texts are owned. */
struct listed {
	char *name, *id, *state, *profile, *workspace, *created, *why;
	int cpu, memory_gib, disk_gib;
	bool is_in_use;
};

struct inventory {
	const struct provider_context *context;
	const struct inventory_listener *listener;
	void *data;
	enum inventory_act act;
	char *name;      // owned; NULL for a list
	char *directory; // owned; from the request; or NULL
	struct daytona_profile profile;
	struct daytona_opening *opening; // owned; or NULL
	struct daytona_api *api;
	struct daytona_claim *claim; // of an order about one sandbox
	struct daytona_box *box;     // of an order about one sandbox
	struct daytona_account account;
	struct daytona_identity identity;
	struct pool_job job;
	struct listed *listed; // owned
	size_t count;
	struct error err;
	bool has_failed;
};

/* ---- end ---- */

static void inventory_free(struct inventory *self)
{
	for (size_t i = 0; i < self->count; i++) {
		struct listed *one = &self->listed[i];
		char *const texts[] = {one->name, one->id, one->state, one->profile, one->workspace,
			one->created, one->why};
		for (size_t j = 0; j < ARRAY_LENGTH(texts); j++) {
			free(texts[j]);
		}
	}
	free(self->listed);
	daytona_box_destroy(self->box);
	daytona_claim_destroy(self->claim);
	daytona_opening_cancel(self->opening);
	daytona_api_destroy(self->api);
	daytona_identity_finish(&self->identity);
	daytona_account_finish(&self->account);
	daytona_profile_finish(&self->profile);
	free(self->name);
	free(self->directory);
	free(self);
}

static void end(struct inventory *self, const struct error *err)
{
	const struct inventory_listener *listener = self->listener;
	void *data = self->data;
	struct error copy = err ? *err : (struct error){0};
	inventory_free(self);
	listener->on_done(data, err ? &copy : NULL);
}

static void submit(struct inventory *self, void (*run)(struct pool_job *job),
	void (*done)(struct pool_job *job))
{
	struct error err;
	self->job = (struct pool_job){.lane = POOL_LANE_WORK, .run = run, .done = done};
	if (!pool_submit(self->context->pool, &self->job, &err)) {
		end(self, &err);
	}
}

/* ---- a list ---- */

static void add_listed(struct inventory *self, struct listed one)
{
	self->listed = mem_realloc(self->listed, (self->count + 1) * sizeof(*self->listed));
	self->listed[self->count++] = one;
}

static void on_listed(void *data, const struct daytona_sandbox *seen)
{
	struct inventory *self = data;
	if (daytona_state_find(seen->state)->to_rest == DAYTONA_STEP_GONE) {
		return;
	}
	add_listed(self, (struct listed){.name = mem_strdup(seen->name),
				 .id = mem_strdup(seen->id),
				 .state = mem_strdup(seen->state),
				 .profile = mem_strdup(daytona_label(seen, DAYTONA_LABEL_PROFILE)),
				 .created = mem_strdup(seen->created_at),
				 .why = mem_strdup(seen->error_reason),
				 .cpu = seen->cpu,
				 .memory_gib = seen->memory_gib,
				 .disk_gib = seen->disk_gib});
}

static bool is_listed(const struct inventory *self, const char *name)
{
	for (size_t i = 0; i < self->count; i++) {
		if (strcmp(self->listed[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

/* Sandboxes that this profile made with another account; only a note knows them. */
static void on_note(void *data, const char *name)
{
	struct inventory *self = data;
	const char *folder = self->context->state_folder;
	struct daytona_note note;
	struct error ignored;
	bool is_same = true;
	if (self->count == DAYTONA_LIST_MAX || is_listed(self, name) ||
		!daytona_note_read(folder, name, &note, &ignored)) {
		return;
	}
	if (strcmp(note.profile, self->profile.name) == 0 &&
		daytona_account_check(&self->account, &note.mark, &is_same, &ignored) && !is_same) {
		add_listed(self, (struct listed){.name = mem_strdup(name),
					 .id = mem_strdup(name),
					 .state = mem_strdup("unknown"),
					 .profile = mem_strdup(note.profile),
					 .workspace = mem_strdup_or_null(note.workspace),
					 .created = mem_strdup(""),
					 .why = daytona_mark_describe(&note.mark),
					 .is_in_use = daytona_note_is_held(folder, name)});
	}
	daytona_note_finish(&note);
}

/* Reads the local notes. */
static void run_scan(struct pool_job *job)
{
	struct inventory *self = CONTAINER_OF(job, struct inventory, job);
	const char *folder = self->context->state_folder;
	for (size_t i = 0; i < self->count; i++) {
		struct listed *one = &self->listed[i];
		struct daytona_note note = {0};
		struct error ignored;
		if (daytona_name_is_valid(one->name)) {
			one->is_in_use = daytona_note_is_held(folder, one->name);
			if (daytona_note_read(folder, one->name, &note, &ignored)) {
				one->workspace = mem_strdup_or_null(note.workspace);
				daytona_note_finish(&note);
			}
		}
	}
	struct error err;
	if (!daytona_note_visit(folder, on_note, self, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "%s", err.text);
	}
}

static void on_scanned(struct pool_job *job)
{
	struct inventory *self = CONTAINER_OF(job, struct inventory, job);
	for (size_t i = 0; i < self->count; i++) {
		const struct listed *one = &self->listed[i];
		self->listener->on_entry(
			self->data, &(struct inventory_entry){
					    .name = one->name,
					    .id = one->id,
					    .state = one->state,
					    .profile = one->profile,
					    .workspace = one->workspace ? one->workspace : "",
					    .created = one->created,
					    .why = one->why,
					    .cpu = one->cpu,
					    .memory_gib = one->memory_gib,
					    .disk_gib = one->disk_gib,
					    .is_in_use = one->is_in_use,
				    });
	}
	end(self, NULL);
}

static void on_list_ended(void *data, const struct error *err)
{
	struct inventory *self = data;
	if (err) {
		end(self, err);
	} else {
		submit(self, run_scan, on_scanned);
	}
}

static const struct daytona_list_listener list_listener = {
	.on_sandbox = on_listed, .on_done = on_list_ended};

static void run_identify(struct pool_job *job)
{
	struct inventory *self = CONTAINER_OF(job, struct inventory, job);
	self->has_failed = !daytona_identity_init(&self->identity, self->context->state_folder,
		self->profile.name, NULL, false, &self->err);
}

static void on_identified(struct pool_job *job)
{
	struct inventory *self = CONTAINER_OF(job, struct inventory, job);
	if (self->has_failed) {
		end(self, &self->err);
		return;
	}
	/*
	 * Includes sandboxes of profiles that no longer exist, because nothing else would show
	 * them.
	 */
	struct daytona_pair query[] = {{DAYTONA_LABEL_OWNER, self->identity.owner}, {NULL, NULL}};
	daytona_list(self->api, query, &list_listener, self);
}

/* ---- orders about one sandbox ---- */

static void on_forgotten(void *data, const struct error *err)
{
	struct inventory *self = data;
	end(self, self->has_failed ? &self->err : NULL);
}

static void on_ended(void *data, const struct error *err)
{
	struct inventory *self = data;
	if (err || self->act == INVENTORY_STOP) {
		end(self, err);
	} else {
		daytona_claim_forget(self->claim, on_forgotten);
	}
}

static void end_others(struct inventory *self, const char *others)
{
	struct error err;
	error_set_reason(&err, ERROR_NOT_FOUND, "DAYTONA_OTHER_ACCOUNT",
		"the account of this key has no sandbox %s: it was made %s, and "
		"may still exist; use that account, or forget the sandbox here "
		"with --discard",
		self->name, others);
	end(self, &err);
}

static void on_seen(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct inventory *self = data;
	if (err && err->code != ERROR_NOT_FOUND) {
		end(self, err);
		return;
	}
	const char *others = daytona_claim_others(self->claim);
	if (err && others && self->act != INVENTORY_DISCARD) {
		end_others(self, others);
		return;
	}
	if (err && others) {
		log_warning("sandbox %s was made %s: it may still exist", self->name, others);
		daytona_claim_forget(self->claim, on_forgotten);
		return;
	}
	if (err) {
		self->has_failed = true;
		error_set_reason(&self->err, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
			"the account of profile \"%s\" has no sandbox %s", self->profile.name,
			self->name);
		daytona_claim_forget(self->claim, on_forgotten);
		return;
	}
	self->box = daytona_box_create(&(struct daytona_box_config){
		.loop = self->context->loop,
		.api = self->api,
		.profile = &self->profile,
		.identity = daytona_claim_identity(self->claim),
		.name = self->name,
		.others = daytona_claim_others(self->claim),
		.data = self,
	});
	if (self->act == INVENTORY_STOP) {
		daytona_box_rest(self->box, false, on_ended);
	} else {
		daytona_box_delete(self->box, on_ended);
	}
}

static void on_alone(void *data, const struct error *err)
{
	struct inventory *self = data;
	struct error denied;
	if (err && err->code == ERROR_UNAVAILABLE) {
		error_set_reason(&denied, ERROR_DENIED, "SANDBOX_IN_USE",
			"sandbox %s: a broker that is running uses it", self->name);
		end(self, &denied);
	} else if (err) {
		end(self, err);
	} else {
		daytona_get(self->api, self->name, on_seen, self);
	}
}

static void on_claimed(void *data, const struct error *err)
{
	struct inventory *self = data;
	if (err) {
		end(self, err);
	} else {
		daytona_claim_take_alone(self->claim, on_alone);
	}
}

/* ---- for the caller ---- */

static void on_opened(void *data, struct daytona_api *api, const struct error *err)
{
	struct inventory *self = data;
	self->opening = NULL;
	self->api = api;
	if (err) {
		struct error copy = *err;
		error_prefix(&copy, "profile \"%s\"", self->profile.name);
		end(self, &copy);
		return;
	}
	daytona_profile_account(&self->profile, &self->account);
	if (self->act == INVENTORY_LIST) {
		submit(self, run_identify, on_identified);
		return;
	}
	self->claim = daytona_claim_create(&(struct daytona_claim_config){
		.context = self->context,
		.profile = self->profile.name,
		.account = &self->account,
		.directory = self->directory,
		.reference = self->name,
		.is_transient = false,
		.timeout_ms = self->profile.stop_timeout_ms,
		.data = self,
	});
	daytona_claim_take(self->claim, NULL, on_claimed);
}

static bool begin(struct inventory *self, struct daytona_shared *shared,
	const struct sandbox_request *request, struct error *err)
{
	if (!daytona_profile_read(&self->profile, request->profile, request->settings,
		    self->context->environment, err)) {
		return false;
	}
	if (self->name && !daytona_name_is_valid(self->name)) {
		return error_set(err, ERROR_CONFIG, "%s is not a sandbox's name", self->name);
	}
	self->opening = daytona_opening_start(shared, &self->profile, on_opened, self, err);
	return self->opening != NULL;
}

bool daytona_inventory(struct daytona_shared *shared, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err)
{
	struct inventory *self = mem_alloc_zero(sizeof(*self));
	self->context = shared->context;
	self->listener = listener;
	self->data = data;
	self->act = act;
	self->name = mem_strdup_or_null(name);
	self->directory = mem_strdup_or_null(request->directory);
	if (!begin(self, shared, request, err)) {
		error_prefix(err, "profile \"%s\"", request->profile);
		inventory_free(self);
		return false;
	}
	return true;
}
