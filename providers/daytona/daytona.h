/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_DAYTONA_H
#define PROVIDERS_DAYTONA_DAYTONA_H

#include "providers/provider.h"

/*
 * The provider for sandboxes of the Daytona platform. It creates, finds, starts and stops them by
 * the REST interface (api.h), and uses them by SSH through the platform's gateway, with the code of
 * providers/ssh. The context is borrowed. It loads no library and calls no host before somebody
 * asks for the first sandbox.
 */
struct provider *daytona_provider_create(const struct provider_context *context);

#endif
