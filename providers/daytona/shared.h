/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_SHARED_H
#define PROVIDERS_DAYTONA_SHARED_H

#include "providers/daytona/keys.h"
#include "providers/ssh/runs.h"

/* Data of the provider that all sandboxes and orders of this process borrow. */
struct daytona_shared {
	const struct provider_context *context; // borrowed
	struct ssh_runs runs;
	struct daytona_keys keys;
};

#endif
