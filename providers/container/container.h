/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONTAINER_CONTAINER_H
#define PROVIDERS_CONTAINER_CONTAINER_H

#include "providers/provider.h"

/*
 * The provider for containers of podman or docker. It knows which commands start, end and list a
 * container, and what they print (commands.h). providers/exec/platform.h does everything else,
 * including all work inside a container. The context is borrowed.
 */
struct provider *container_provider_create(const struct provider_context *context);

#endif
