/* SPDX-License-Identifier: MIT */
#include "providers/exec/exec.h"

#include "base/buf.h"
#include "providers/exec/keys.h"
#include "providers/exec/platform.h"

static bool check(const struct settings *settings, char ***warnings, struct error *err)
{
	return exec_platform_check(&exec_platform, settings, err);
}

static const struct error_reason reasons[] = {EXEC_REASONS};

static const struct provider_impl impl = {
	.name = "exec",
	.keys = exec_keys,
	.key_count = EXEC_KEYS,
	.reasons = reasons,
	.reason_count = ARRAY_LENGTH(reasons),
	.check = check,
	EXEC_PROVIDER_CALLS,
};

struct provider *exec_provider_create(const struct provider_context *context)
{
	return exec_platform_provider_create(context, &impl, &exec_platform);
}
