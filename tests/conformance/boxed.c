/* SPDX-License-Identifier: MIT */
#include "tests/conformance/boxed.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "providers/exec/exec.h"
#include "providers/impl.h"

/* The provider itself, with the keys that the cases do not know. */
struct boxed_provider {
	struct provider provider;
	struct provider *exec; // owned
	struct settings settings;
};

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	const struct boxed_provider *self = CONTAINER_OF(provider, struct boxed_provider, provider);
	struct sandbox_request ours = *request;
	ours.settings = &self->settings;
	return sandbox_prepare(self->exec, &ours, listener, data, err);
}

static void destroy(struct provider *provider)
{
	struct boxed_provider *self = CONTAINER_OF(provider, struct boxed_provider, provider);
	provider_destroy(self->exec);
	settings_finish(&self->settings);
	free(self);
}

static const struct provider_impl impl = {.name = "exec", .destroy = destroy, .prepare = prepare};

struct provider *boxed_provider_create(const struct provider_context *context, const char *folder)
{
	static const char *const verbs[] = {"exec", "start", "stop", "destroy", "state"};
	struct boxed_provider *self = mem_alloc_zero(sizeof(*self));
	self->provider.impl = &impl;
	self->exec = exec_provider_create(context);
	settings_init(&self->settings);
	for (size_t i = 0; i < ARRAY_LENGTH(verbs); i++) {
		char words[2 * PATH_MAX];
		snprintf(words, sizeof(words), "sh '%s' '%s/platform' plain %s %%i", BOX_SCRIPT,
			folder, verbs[i]);
		settings_add(&self->settings, verbs[i], words, "test");
	}
	settings_add(&self->settings, "runtime-root", "run time", "test");
	/* A box for each sandbox: one is destroyed while another is used. */
	settings_add(&self->settings, "persistence", "transient", "test");
	return &self->provider;
}
