/* SPDX-License-Identifier: MIT */
#include "providers/daytona/daytona.h"

#include <stdlib.h>

#include "base/buf.h"
#include "providers/daytona/inventory.h"
#include "providers/daytona/profile.h"
#include "providers/daytona/sandbox.h"
#include "providers/daytona/shared.h"
#include "providers/daytona/sweep.h"
#include "providers/impl.h"

struct daytona_provider {
	struct provider provider;
	struct provider_impl impl;
	struct daytona_shared shared;
};

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	struct daytona_provider *self = CONTAINER_OF(provider, struct daytona_provider, provider);
	return daytona_sandbox_open(&self->shared, request, listener, data, err);
}

static bool inventory(struct provider *provider, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err)
{
	struct daytona_provider *self = CONTAINER_OF(provider, struct daytona_provider, provider);
	return daytona_inventory(&self->shared, request, act, name, listener, data, err);
}

static bool describe(struct provider *provider, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err)
{
	struct daytona_provider *self = CONTAINER_OF(provider, struct daytona_provider, provider);
	return daytona_describe(&self->shared, settings, listener, data, err);
}

static struct provider_sweep *sweep(struct provider *provider,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err)
{
	struct daytona_provider *self = CONTAINER_OF(provider, struct daytona_provider, provider);
	return daytona_sweep(provider, &self->shared, request, kept, done, data, err);
}

static void destroy(struct provider *provider)
{
	struct daytona_provider *self = CONTAINER_OF(provider, struct daytona_provider, provider);
	daytona_keys_finish(&self->shared.keys);
	ssh_runs_finish(&self->shared.runs);
	free(self);
}

/* providers/ssh has the reasons of SSH, which carries everything that runs in a sandbox. */
static const struct error_reason reasons[] = {
	{"DAYTONA_UNAUTHORIZED", false,
		"give the profile's key the permissions that the message names, or another key"},
	{"DAYTONA_KEY_COMMAND", false,
		"run the profile's api-key-command in a shell: it must print only the key, in its "
		"first line, without a terminal"},
	{"DAYTONA_OTHER_ACCOUNT", false,
		"use the key, organization and URL with which it was made, or discard it"},
	{"DAYTONA_QUOTA_EXCEEDED", true,
		"stop or delete another sandbox, then try again; the message has the limit"},
	{"DAYTONA_REJECTED", false,
		"change the setting to which the service objects in the message"},
	{"DAYTONA_CONFLICT", true, "try again; then the existing sandbox with this name is used"},
	{"DAYTONA_RATE_LIMITED", true, "try again after the time in the message"},
	{"DAYTONA_UNTRUSTED", false,
		"correct the profile's URL, or set SSL_CERT_FILE to the authority's certificates"},
	{"DAYTONA_VERSION", false,
		"use the URL of the platform's first version; docs/daytona.md lists what was "
		"tested"},
	{"DAYTONA_UNAVAILABLE", true,
		"try again; the message says what the service answered, or why it did not"},
};

static const struct provider_place places[] = {
	{.name = "cloud",
		.text = "in a sandbox at Daytona, in a copy of your project",
		.image = "node:22"},
};

/* The sandboxes belong to its account, so a key is needed. */
static bool look_at_place(struct provider *provider, const struct provider_place *place,
	char ***choices, struct error *err)
{
	struct daytona_provider *self = CONTAINER_OF(provider, struct daytona_provider, provider);
	struct daytona_profile profile;
	struct settings settings;
	settings_init(&settings);
	bool ok = daytona_profile_read(
		&profile, "", &settings, self->shared.context->environment, err);
	if (ok) {
		ok = daytona_profile_key(&profile, err) != NULL;
		daytona_profile_finish(&profile);
	}
	settings_finish(&settings);
	if (!ok) {
		err->code = ERROR_UNAVAILABLE; // no setting is wrong; one is missing
	}
	return ok;
}

struct provider *daytona_provider_create(const struct provider_context *context)
{
	struct daytona_provider *self = mem_alloc_zero(sizeof(*self));
	self->impl = (struct provider_impl){.name = "daytona",
		.keys = daytona_keys,
		.key_count = daytona_key_count,
		.reasons = reasons,
		.reason_count = ARRAY_LENGTH(reasons),
		.network = {.blocks = true,
			.allows_hosts = true,
			.allows_cidrs = true,
			.opens_ingress = true,
			.closes_ingress = true,
			.entries_max = 10,
			.needs_domains = true,
			.needs_ipv4 = true},
		.destroy = destroy,
		.prepare = prepare,
		.describe = describe,
		.inventory = inventory,
		.places = places,
		.place_count = ARRAY_LENGTH(places),
		.look_at_place = look_at_place,
		.sweep = sweep,
		.sweep_cancel = daytona_sweep_cancel};
	self->provider.impl = &self->impl;
	self->shared.context = context;
	ssh_runs_init(&self->shared.runs, context->state_folder);
	daytona_keys_init(&self->shared.keys, context);
	return &self->provider;
}
