/* SPDX-License-Identifier: MIT */
#include "providers/kubernetes/kubernetes.h"

#include "base/buf.h"
#include "providers/exec/platform.h"
#include "providers/kubernetes/commands.h"

static bool check(const struct settings *settings, char ***warnings, struct error *err)
{
	return exec_platform_check(&kubernetes_platform, settings, err);
}

static const struct error_reason reasons[] = {EXEC_REASONS};

static const struct provider_impl impl = {
	.name = "kubernetes",
	.keys = kubernetes_keys,
	.key_count = KUBERNETES_KEYS,
	.reasons = reasons,
	.reason_count = ARRAY_LENGTH(reasons),
	.check = check,
	EXEC_PROVIDER_CALLS,
};

struct provider *kubernetes_provider_create(const struct provider_context *context)
{
	return exec_platform_provider_create(context, &impl, &kubernetes_platform);
}
