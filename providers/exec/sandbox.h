/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_SANDBOX_H
#define PROVIDERS_EXEC_SANDBOX_H

#include "providers/exec/profile.h"
#include "providers/impl.h"
#include "providers/ssh/runs.h"

/* The state that all sandboxes of a provider share. */
struct exec_shared {
	const struct provider_context *context; // borrowed
	const struct exec_platform *platform;   // static
	struct ssh_runs runs; // whose end is not confirmed; a place is an instance
	char token[33];       // names this broker's folders if the profile has no start; or ""
};

/*
 * A sandbox in an instance (instance.h), or in the fixed place to which the profile's exec leads. A
 * runner does all the work there (providers/remote/remote.h), and each workspace has a folder
 * (providers/ssh/roots.h).
 */
struct sandbox *exec_sandbox_open(struct exec_shared *shared, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

#endif
