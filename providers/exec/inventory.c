/* SPDX-License-Identifier: MIT */
#include "providers/exec/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/soon.h"
#include "providers/exec/command.h"
#include "providers/exec/instance.h"

enum { LISTED_MAX = 256 };

/* One instance of the list; the texts are owned. */
struct listed {
	char *name;
	struct exec_note note;
	const char *state; // static
	bool is_in_use;
};

struct inventory {
	const struct provider_context *context;
	const struct exec_platform *platform;
	const struct inventory_listener *listener;
	void *data;
	enum inventory_act act;
	struct exec_profile profile;
	struct exec_instance *instance; // the one to stop or remove; NULL: we list them all
	struct exec_command *command;   // the one that runs, or NULL
	struct pool_job job;
	struct soon soon;
	struct listed *listed; // owned
	size_t count;
	size_t asked; // the number of those whose state we have asked for
};

/* ---- the end ---- */

static void inventory_free(struct inventory *self)
{
	for (size_t i = 0; i < self->count; i++) {
		free(self->listed[i].name);
		exec_note_finish(&self->listed[i].note);
	}
	free(self->listed);
	exec_command_cancel(self->command);
	exec_instance_destroy(self->instance);
	exec_profile_finish(&self->profile);
	soon_stop(&self->soon);
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

/* ---- a list ---- */

static void tell_all(struct inventory *self)
{
	for (size_t i = 0; i < self->count; i++) {
		const struct listed *one = &self->listed[i];
		const struct exec_note *note = &one->note;
		self->listener->on_entry(
			self->data, &(struct inventory_entry){
					    .name = one->name,
					    .id = note->instance ? note->instance : one->name,
					    .state = one->state,
					    .profile = note->profile,
					    .workspace = note->workspace ? note->workspace : "",
					    .created = "",
					    .why = note->instance ? "" : "start has not named it",
					    .is_in_use = one->is_in_use,
				    });
	}
	end(self, NULL);
}

static const char *state_text(int status)
{
	switch (status) {
	case EXEC_STATE_RUNNING:
		return "running";
	case EXEC_STATE_STOPPED:
		return "stopped";
	case EXEC_STATE_GONE:
		return "gone";
	case EXEC_STATE_WAITING:
		return "waiting";
	default:
		return "unknown";
	}
}

static void ask_next(struct inventory *self);

static void on_state(
	void *data, int status, struct span out, const char *words, const struct error *err)
{
	struct inventory *self = data;
	self->command = NULL;
	self->listed[self->asked++].state = err ? "unknown" : state_text(status);
	ask_next(self);
}

static void ask_next(struct inventory *self)
{
	struct error err;
	if (self->asked == self->count || !self->profile.words[EXEC_STATE]) {
		tell_all(self);
		return;
	}
	const struct listed *one = &self->listed[self->asked];
	const struct exec_values values = {
		.instance = one->note.instance ? one->note.instance : one->name,
		.proposed = one->name};
	self->command = exec_command_start(
		self->context, &self->profile, EXEC_STATE, &values, on_state, self, &err);
	if (!self->command) {
		end(self, &err);
	}
}

static bool has_line(struct span text, const char *line)
{
	while (text.len > 0) {
		const char *newline = memchr(text.data, '\n', text.len);
		size_t len = newline ? (size_t)(newline - text.data) : text.len;
		if (span_is((struct span){text.data, len}, line)) {
			return true;
		}
		len += newline != NULL;
		text.data += len;
		text.len -= len;
	}
	return false;
}

static void on_list(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct inventory *self = data;
	struct error err;
	self->command = NULL;
	if (!failure && status != 0) {
		(void)exec_command_refuse(&self->profile, EXEC_LIST, status, words, &err);
		failure = &err;
	}
	if (failure) {
		end(self, failure);
		return;
	}
	for (size_t i = 0; i < self->count; i++) {
		struct listed *one = &self->listed[i];
		const char *name = one->note.instance ? one->note.instance : one->name;
		one->state = has_line(out, name) ? "exists" : "gone";
	}
	ask_next(self);
}

static void on_note(void *data, const char *name)
{
	struct inventory *self = data;
	const struct notes notes = exec_notes(self->context, self->platform);
	struct exec_note note;
	struct error ignored;
	if (self->count == LISTED_MAX || !exec_note_read(&notes, name, &note, &ignored)) {
		return;
	}
	if (strcmp(note.profile, self->profile.name) != 0) {
		exec_note_finish(&note);
		return;
	}
	self->listed = mem_realloc(self->listed, (self->count + 1) * sizeof(*self->listed));
	self->listed[self->count++] = (struct listed){.name = mem_strdup(name),
		.note = note,
		.state = "unknown",
		.is_in_use = notes_is_held(&notes, name)};
}

static void run_scan(struct pool_job *job)
{
	struct inventory *self = CONTAINER_OF(job, struct inventory, job);
	const struct notes notes = exec_notes(self->context, self->platform);
	struct error err;
	if (!notes_visit(&notes, on_note, self, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "%s", err.text);
	}
}

static void on_scanned(struct pool_job *job)
{
	struct inventory *self = CONTAINER_OF(job, struct inventory, job);
	struct error err;
	if (self->count == 0 || !self->profile.words[EXEC_LIST]) {
		ask_next(self);
		return;
	}
	self->command = exec_command_start(self->context, &self->profile, EXEC_LIST,
		&(struct exec_values){0}, on_list, self, &err);
	if (!self->command) {
		end(self, &err);
	}
}

/* ---- one of them ---- */

static void on_ended(void *data, const struct error *err)
{
	struct inventory *self = data;
	struct error denied;
	if (err && err->code == ERROR_UNAVAILABLE && !err->reason) {
		error_set_reason(&denied, ERROR_DENIED, "SANDBOX_IN_USE",
			"sandbox %s: a broker that is running uses it",
			exec_instance_reference(self->instance));
		err = &denied;
	}
	end(self, err);
}

/* If an instance cannot be removed, "discard" at least removes its note. */
static void on_removed(void *data, const struct error *err)
{
	struct inventory *self = data;
	if (err && self->act == INVENTORY_DISCARD && err->code != ERROR_DENIED) {
		log_warning("sandbox %s may still exist: %s",
			exec_instance_reference(self->instance), err->text);
		exec_instance_forget(self->instance, on_ended);
	} else {
		on_ended(self, err);
	}
}

static void on_opened(void *data, const struct error *err)
{
	struct inventory *self = data;
	if (err) {
		on_ended(self, err);
	} else if (self->act != INVENTORY_STOP) {
		exec_instance_remove(self->instance, on_removed);
	} else if (self->profile.words[EXEC_STOP]) {
		exec_instance_rest(self->instance, on_ended);
	} else {
		struct error none;
		error_set(
			&none, ERROR_CONFIG, "profile \"%s\" has no key stop", self->profile.name);
		end(self, &none);
	}
}

/* ---- for the caller ---- */

static void on_nothing(struct soon *soon)
{
	end(CONTAINER_OF(soon, struct inventory, soon), NULL);
}

static bool begin(struct inventory *self, const struct sandbox_request *request, const char *name,
	struct error *err)
{
	if (!exec_profile_read(&self->profile, self->platform, request->profile, request->settings,
		    self->context, err)) {
		return false;
	}
	bool has_any = exec_profile_has_instances(&self->profile);
	if (!has_any && name) {
		return error_set(err, ERROR_NOT_FOUND, "it makes no sandboxes: it has no start");
	}
	if (!has_any) {
		soon_start(&self->soon);
		return true;
	}
	if (name) {
		self->instance = exec_instance_create(
			&(struct exec_instance_config){.context = self->context,
				.profile = &self->profile,
				.reference = name,
				.data = self});
		exec_instance_open(self->instance, on_opened);
		return true;
	}
	self->job = (struct pool_job){.lane = POOL_LANE_WORK, .run = run_scan, .done = on_scanned};
	return pool_submit(self->context->pool, &self->job, err);
}

bool exec_inventory(const struct exec_shared *shared, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err)
{
	struct inventory *self = mem_alloc_zero(sizeof(*self));
	self->context = shared->context;
	self->platform = shared->platform;
	self->listener = listener;
	self->data = data;
	self->act = act;
	soon_init(&self->soon, shared->context->loop, on_nothing);
	if (!begin(self, request, name, err)) {
		error_prefix(err, "profile \"%s\"", request->profile);
		inventory_free(self);
		return false;
	}
	return true;
}
