/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_LOCAL_H
#define PROVIDERS_LOCAL_LOCAL_H

#include "providers/provider.h"

/*
 * This machine itself: processes in the workspace, paths as they are, the
 * broker's own environment, any number of roots. The context is borrowed.
 */
struct provider *local_provider_create(const struct provider_context *context);

#endif
