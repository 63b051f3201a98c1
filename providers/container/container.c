/* SPDX-License-Identifier: MIT */
#include "providers/container/container.h"

#include "base/buf.h"
#include "providers/container/commands.h"
#include "providers/exec/platform.h"

static bool check(const struct settings *settings, char ***warnings, struct error *err)
{
	return exec_platform_check(&container_platform, settings, err);
}

/* We publish no port of the containers that we make. About other containers we know nothing. */
static struct network_abilities network_of(const struct settings *settings)
{
	bool is_ours = settings_get(settings, "container") == NULL;
	return (struct network_abilities){.blocks = is_ours, .closes_ingress = is_ours};
}

static bool is_isolated(const struct settings *settings)
{
	return !container_shows_workspace(settings);
}

static const struct error_reason reasons[] = {
	EXEC_REASONS,
	{"ENGINE_NOT_FOUND", false,
		"install podman or docker, or name the installed one with engine"},
	{"DOCKERFILE_REFUSED", false,
		"move the Dockerfile to a folder that only you can write, outside of all "
		"workspaces"},
};

static const struct provider_impl impl = {
	.name = "container",
	.keys = container_keys,
	.key_count = CONTAINER_KEYS,
	.reasons = reasons,
	.reason_count = ARRAY_LENGTH(reasons),
	.is_isolated = is_isolated,
	.network_of = network_of,
	.check = check,
	EXEC_PROVIDER_CALLS,
};

struct provider *container_provider_create(const struct provider_context *context)
{
	return exec_platform_provider_create(context, &impl, &container_platform);
}
