/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "providers/impl.h"
#include "providers/provider.h"

struct registry {
	struct provider *providers[BACKEND_COUNT]; // owned; NULL: not registered
};

struct registry *registry_create(void)
{
	return mem_alloc_zero(sizeof(struct registry));
}

void registry_destroy(struct registry *registry)
{
	if (!registry) {
		return;
	}
	for (int i = 0; i < BACKEND_COUNT; i++) {
		provider_destroy(registry->providers[i]);
	}
	free(registry);
}

static bool backend_is_valid(enum backend backend)
{
	return (unsigned)backend < BACKEND_COUNT;
}

bool registry_add(struct registry *registry, struct provider *provider, struct error *err)
{
	if (!provider) {
		return error_set(err, ERROR_CONFIG, "provider is nil");
	}
	if (!provider->impl || !backend_is_valid(provider->impl->backend)) {
		return error_set(err, ERROR_CONFIG, "provider backend is invalid");
	}
	enum backend backend = provider->impl->backend;
	provider_destroy(registry->providers[backend]);
	registry->providers[backend] = provider;
	return true;
}

struct provider *registry_get(
	const struct registry *registry, enum backend backend, struct error *err)
{
	if (!backend_is_valid(backend)) {
		error_set(err, ERROR_CONFIG, "provider backend is invalid");
		return NULL;
	}
	if (!registry->providers[backend]) {
		error_set(err, ERROR_CONFIG, "provider not registered");
		return NULL;
	}
	return registry->providers[backend];
}
