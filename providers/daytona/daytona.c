/* SPDX-License-Identifier: MIT */
#include "providers/daytona/daytona.h"

#include <stdlib.h>

#include "base/buf.h"
#include "providers/daytona/inventory.h"
#include "providers/daytona/profile.h"
#include "providers/daytona/sandbox.h"
#include "providers/daytona/sweep.h"
#include "providers/impl.h"
#include "providers/ssh/runs.h"

struct daytona_provider {
	struct provider provider;
	struct provider_impl impl;
	const struct provider_context *context;
	struct ssh_runs runs;
};

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	struct daytona_provider *self = CONTAINER_OF(provider, struct daytona_provider, provider);
	return daytona_sandbox_open(self->context, &self->runs, request, listener, data, err);
}

static bool inventory(struct provider *provider, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err)
{
	const struct daytona_provider *self =
		CONTAINER_OF(provider, struct daytona_provider, provider);
	return daytona_inventory(self->context, request, act, name, listener, data, err);
}

static bool describe(struct provider *provider, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err)
{
	const struct daytona_provider *self =
		CONTAINER_OF(provider, struct daytona_provider, provider);
	return daytona_describe(self->context, settings, listener, data, err);
}

static struct provider_sweep *sweep(struct provider *provider,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err)
{
	const struct daytona_provider *self =
		CONTAINER_OF(provider, struct daytona_provider, provider);
	return daytona_sweep(provider, self->context, request, kept, done, data, err);
}

static void destroy(struct provider *provider)
{
	struct daytona_provider *self = CONTAINER_OF(provider, struct daytona_provider, provider);
	ssh_runs_finish(&self->runs);
	free(self);
}

struct provider *daytona_provider_create(const struct provider_context *context)
{
	struct daytona_provider *self = mem_alloc_zero(sizeof(*self));
	self->impl = (struct provider_impl){.name = "daytona",
		.keys = daytona_keys,
		.key_count = daytona_key_count,
		.network = {.blocks = true,
			.allows_hosts = true,
			.allows_cidrs = true,
			.opens_ingress = true,
			.closes_ingress = true},
		.destroy = destroy,
		.prepare = prepare,
		.describe = describe,
		.inventory = inventory,
		.sweep = sweep,
		.sweep_cancel = daytona_sweep_cancel};
	self->provider.impl = &self->impl;
	self->context = context;
	ssh_runs_init(&self->runs);
	return &self->provider;
}
