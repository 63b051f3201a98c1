/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_SWEEP_H
#define PROVIDERS_DAYTONA_SWEEP_H

#include "providers/impl.h"

struct daytona_shared;

/* Implement provider_sweep and provider_sweep_cancel. */
struct provider_sweep *daytona_sweep(struct provider *provider, struct daytona_shared *shared,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err) ATTR_NODISCARD;
void daytona_sweep_cancel(struct provider_sweep *sweep);

#endif
