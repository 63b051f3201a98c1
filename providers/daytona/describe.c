/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"
#include "providers/daytona/identity.h"
#include "providers/daytona/inventory.h"
#include "providers/daytona/opening.h"

struct describing {
	const struct provider_context *context;
	const struct provider_describe_listener *listener;
	void *data;
	struct daytona_profile profile;
	struct daytona_opening *opening; // owned; or NULL
	struct daytona_api *api;
	struct daytona_identity identity;
	struct pool_job job;
	struct error err; // by the worker; why there is no identity
	bool is_identified;
	size_t count;
};

static void tell(const struct describing *self, const char *name, const char *value)
{
	if (value) {
		self->listener->on_fact(self->data, name, value);
	}
}

static void tell_number(
	const struct describing *self, const char *name, int number, const char *unit)
{
	char text[64];
	if (number > 0) {
		text_whole(text, sizeof(text), "%d%s", number, unit);
		tell(self, name, text);
	}
}

static void tell_all(const struct describing *self)
{
	static const char *const ends[] = {[DAYTONA_END_DELETE] = "deleted",
		[DAYTONA_END_STOP] = "stopped",
		[DAYTONA_END_ARCHIVE] = "stopped and archived"};
	const struct daytona_profile *profile = &self->profile;
	bool is_of_image = profile->image != NULL;
	tell(self, "api", profile->api_url);
	tell(self, "api-from", profile->api_url_from);
	tell(self, "api-key", profile->key_from);
	tell(self, "organization", profile->organization);
	tell(self, "region", profile->target);
	tell(self, "region-from", profile->target_from);
	tell(self, is_of_image ? "image" : "snapshot",
		is_of_image         ? profile->image
		: profile->snapshot ? profile->snapshot
				    : "the organization's default");
	tell_number(self, "cpu", profile->cpu, "");
	tell_number(self, "memory", profile->memory_gib, " GiB");
	tell_number(self, "disk", profile->disk_gib, " GiB");
	tell(self, "user", profile->user);
	tell_number(self, "auto-stop", profile->auto_stop_min, " min");
	tell_number(self, "auto-archive", profile->auto_archive_min, " min");
	tell_number(self, "auto-delete", profile->auto_delete_min, " min");
	tell(self, "at the end", ends[profile->end]);
	tell(self, "ssh-host", profile->ssh_host ? profile->ssh_host : "as the service says");
	tell(self, "host-key", profile->host_key ? profile->host_key : "trusted on first use");
}

static void end(struct describing *self, const struct error *err)
{
	const struct provider_describe_listener *listener = self->listener;
	void *data = self->data;
	struct error copy = err ? *err : (struct error){0};
	daytona_api_destroy(self->api);
	daytona_identity_finish(&self->identity);
	daytona_profile_finish(&self->profile);
	free(self);
	listener->on_done(data, err ? &copy : NULL);
}

/* ---- whether the API answers and accepts the key ---- */

static void on_listed(void *data, const struct daytona_sandbox *seen)
{
	struct describing *self = data;
	self->count++;
}

/*
 * Reports missing permissions that the broker needs; using them fails later. It is no error if the
 * service does not report them, because older versions lack this call.
 */
static void on_permissions(void *data, unsigned int permissions, const struct error *err)
{
	struct describing *self = data;
	bool writes = permissions & DAYTONA_MAY_WRITE, deletes = permissions & DAYTONA_MAY_DELETE;
	if (err) {
		tell(self, "permissions", "the service does not say");
	} else {
		tell(self, "permissions",
			writes && deletes ? "write:sandboxes, delete:sandboxes"
			: writes          ? "write:sandboxes"
			: deletes         ? "delete:sandboxes"
					  : "none of those that are needed");
	}
	if (!err && !writes) {
		tell(self, "key-lacks",
			"write:sandboxes: no sandbox can be created, started or stopped");
	}
	if (!err && !deletes) {
		tell(self, "key-lacks",
			"delete:sandboxes: sandboxes are stopped instead of deleted");
	}
	end(self, NULL);
}

static void on_list_ended(void *data, const struct error *err)
{
	struct describing *self = data;
	char text[64];
	if (!err) {
		snprintf(text, sizeof(text), "%zu of yours, in all profiles", self->count);
		tell(self, "sandboxes", text);
	}
	if (err || daytona_key_is_jwt(self->profile.key)) {
		end(self, err);
	} else {
		daytona_ask_permissions(self->api, on_permissions, self);
	}
}

static const struct daytona_list_listener list_listener = {
	.on_sandbox = on_listed, .on_done = on_list_ended};

static void run_identify(struct pool_job *job)
{
	struct describing *self = CONTAINER_OF(job, struct describing, job);
	self->is_identified = daytona_identity_init(&self->identity, self->context->state_folder,
		self->profile.name, NULL, false, &self->err);
}

static void on_identified(struct pool_job *job)
{
	struct describing *self = CONTAINER_OF(job, struct describing, job);
	struct daytona_pair query[] = {{DAYTONA_LABEL_OWNER, self->identity.owner}, {NULL, NULL}};
	if (!self->is_identified) {
		end(self, &self->err);
		return;
	}
	daytona_list(self->api, query, &list_listener, self);
}

static void on_opened(void *data, struct daytona_api *api, const struct error *failure)
{
	struct describing *self = data;
	struct error err;
	self->opening = NULL;
	self->api = api;
	tell_all(self);
	if (failure) {
		end(self, failure);
		return;
	}
	error_set(&self->err, ERROR_UNAVAILABLE, "the broker is ending");
	self->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run_identify, .done = on_identified};
	if (!pool_submit(self->context->pool, &self->job, &err)) {
		end(self, &err);
	}
}

bool daytona_describe(struct daytona_shared *shared, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err)
{
	struct describing *self = mem_alloc_zero(sizeof(*self));
	self->context = shared->context;
	self->listener = listener;
	self->data = data;
	if (!daytona_profile_read(&self->profile, "", settings, self->context->environment, err)) {
		free(self);
		return false;
	}
	self->opening = daytona_opening_start(shared, &self->profile, on_opened, self, err);
	if (!self->opening) {
		daytona_profile_finish(&self->profile);
		free(self);
		return false;
	}
	return true;
}
