/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_H
#define PROVIDERS_LOCAL_COPY_H

#include "providers/provider.h"

/*
 * isolation = copy: this machine, but every workspace is a private folder below
 * STATE/copies/PROFILE, which sync fills and keeps in step as it does a far one. What is
 * ignored in the workspace (node_modules) and so never synced is copied when the
 * folder is made, blocks shared where the file system can, with the .gitignore files
 * that say so. The folder stays until the sandbox is destroyed, and is found again.
 *
 * isolation = none with confine: the workspaces themselves, with pins (pinned.h).
 */
struct sandbox *copy_prepare(const struct provider_context *context,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
