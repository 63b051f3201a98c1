/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_SANDBOX_H
#define PROVIDERS_DAYTONA_SANDBOX_H

#include "providers/provider.h"

struct daytona_shared;

/* Implements sandbox_prepare. ERROR_CONFIG at once for mistakes in the profile. */
struct sandbox *daytona_sandbox_open(struct daytona_shared *shared,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
