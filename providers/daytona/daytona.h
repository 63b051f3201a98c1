/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_DAYTONA_H
#define PROVIDERS_DAYTONA_DAYTONA_H

#include "providers/provider.h"

/*
 * Sandboxes of the Daytona platform: made, found again, started and stopped by its REST
 * interface (api.h), and used by SSH through its gateway, with the code of providers/ssh. The
 * context is borrowed. Nothing is loaded and nobody is called before a sandbox is asked for.
 */
struct provider *daytona_provider_create(const struct provider_context *context);

#endif
