/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "providers/impl.h"
#include "providers/provider.h"

struct registry {
	struct provider *providers[REGISTRY_MAX + 1]; // owned; NULL after the last
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
	for (size_t i = 0; registry->providers[i]; i++) {
		provider_destroy(registry->providers[i]);
	}
	free(registry);
}

/* The index of the provider of this name, or the one after the last. */
static size_t find(const struct registry *registry, const char *name)
{
	size_t i = 0;
	while (registry->providers[i] && strcmp(provider_name(registry->providers[i]), name) != 0) {
		i++;
	}
	return i;
}

bool registry_add(struct registry *registry, struct provider *provider, struct error *err)
{
	if (!provider) {
		return error_set(err, ERROR_CONFIG, "provider is nil");
	}
	if (!provider->impl || !provider->impl->name) {
		return error_set(err, ERROR_CONFIG, "provider has no name");
	}
	size_t at = find(registry, provider->impl->name);
	if (at == REGISTRY_MAX) {
		return error_set(err, ERROR_LIMIT, "more than %d providers", REGISTRY_MAX);
	}
	provider_destroy(registry->providers[at]);
	registry->providers[at] = provider;
	return true;
}

struct provider *registry_get(const struct registry *registry, const char *name, struct error *err)
{
	struct provider *provider = registry->providers[find(registry, name)];
	if (!provider) {
		error_set(err, ERROR_CONFIG, "provider not registered");
	}
	return provider;
}

struct provider *registry_at(const struct registry *registry, size_t index)
{
	return index < REGISTRY_MAX ? registry->providers[index] : NULL;
}

static bool has_secret(const struct provider *provider, struct span name)
{
	size_t count;
	const struct setting_key *keys = provider_keys(provider, &count);
	for (size_t i = 0; i < count; i++) {
		if (keys[i].type == SETTING_SECRET_NAME && keys[i].fallback &&
			span_is(name, keys[i].fallback)) {
			return true;
		}
	}
	return false;
}

bool registry_has_secret(const struct registry *registry, struct span name)
{
	for (size_t i = 0; registry->providers[i]; i++) {
		if (has_secret(registry->providers[i], name)) {
			return true;
		}
	}
	return false;
}
