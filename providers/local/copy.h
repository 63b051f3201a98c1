/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_H
#define PROVIDERS_LOCAL_COPY_H

#include "providers/provider.h"

/*
 * isolation = copy: the sandbox is this machine, but each workspace is a private folder below
 * STATE/copies/PROFILE. Sync fills this folder and keeps it in step, as it does with a remote one.
 * Sync never transfers ignored files (node_modules), so these are copied when the folder is made,
 * with the .gitignore files that name them; the copies share disk blocks if the file system
 * supports that. The folder stays until the sandbox is destroyed, and later sessions use it again.
 *
 * isolation = none with confine: the agent works in the workspaces themselves, and pins protect
 * some of their files (pinned.h).
 */
struct sandbox *copy_prepare(const struct provider_context *context,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
