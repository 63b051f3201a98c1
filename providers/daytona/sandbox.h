/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_SANDBOX_H
#define PROVIDERS_DAYTONA_SANDBOX_H

#include "providers/provider.h"

struct ssh_runs;

/*
 * sandbox_prepare of the provider, whose runs are borrowed. ERROR_CONFIG at once for what the
 * profile says wrong.
 */
struct sandbox *daytona_sandbox_open(const struct provider_context *context, struct ssh_runs *runs,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
