/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_SANDBOX_H
#define PROVIDERS_EXEC_SANDBOX_H

#include "providers/exec/profile.h"
#include "providers/impl.h"
#include "providers/ssh/runs.h"

/* What the sandboxes of a provider share. */
struct exec_shared {
	const struct provider_context *context; // borrowed
	const struct exec_platform *platform;   // static
	struct ssh_runs runs; // of this broker's lost connections; its place is an instance
	char token[33]; // names the folders of this broker where nobody makes instances; or ""
};

/*
 * A sandbox in an instance (instance.h), or where the profile's exec leads: a runner does all there
 * (providers/remote/remote.h), and each workspace has a folder (providers/ssh/roots.h).
 */
struct sandbox *exec_sandbox_open(struct exec_shared *shared, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

#endif
