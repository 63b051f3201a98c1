/* SPDX-License-Identifier: MIT */
#include "tests/conformance/boxed.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "providers/exec/exec.h"
#include "providers/impl.h"
#include "providers/slurm/slurm.h"

/* The provider itself, with the keys that the cases do not know. */
struct boxed_provider {
	struct provider provider;
	struct provider *inner; // owned
	struct settings settings;
};

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	const struct boxed_provider *self = CONTAINER_OF(provider, struct boxed_provider, provider);
	struct sandbox_request ours = *request;
	ours.settings = &self->settings;
	return sandbox_prepare(self->inner, &ours, listener, data, err);
}

static void destroy(struct provider *provider)
{
	struct boxed_provider *self = CONTAINER_OF(provider, struct boxed_provider, provider);
	provider_destroy(self->inner);
	settings_finish(&self->settings);
	free(self);
}

static const struct provider_impl exec_impl = {
	.name = "exec", .destroy = destroy, .prepare = prepare};
static const struct provider_impl slurm_impl = {
	.name = "slurm", .destroy = destroy, .prepare = prepare};

static struct boxed_provider *create(
	const struct provider_impl *provider_impl, struct provider *inner)
{
	struct boxed_provider *self = mem_alloc_zero(sizeof(*self));
	self->provider.impl = provider_impl;
	self->inner = inner;
	settings_init(&self->settings);
	settings_add(&self->settings, "runtime-root", "run time", "test");
	/* An instance for each sandbox: one is destroyed while another is used. */
	settings_add(&self->settings, "persistence", "transient", "test");
	return self;
}

struct provider *boxed_provider_create(const struct provider_context *context, const char *folder)
{
	static const char *const verbs[] = {"exec", "start", "stop", "destroy", "state"};
	struct boxed_provider *self = create(&exec_impl, exec_provider_create(context));
	for (size_t i = 0; i < ARRAY_LENGTH(verbs); i++) {
		char words[2 * PATH_MAX];
		snprintf(words, sizeof(words), "sh '%s' '%s/platform' plain %s %%i", BOX_SCRIPT,
			folder, verbs[i]);
		settings_add(&self->settings, verbs[i], words, "test");
	}
	return &self->provider;
}

struct provider *boxed_provider_create_slurm(
	const struct provider_context *context, const char *folder)
{
	return &create(&slurm_impl, slurm_provider_create(context))->provider;
}
