/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_EXEC_H
#define PROVIDERS_EXEC_EXEC_H

#include "providers/provider.h"

/*
 * The provider for any platform with a command line. The profile names the commands that start, end
 * and list its instances, and the one that runs a program in an instance (profile.h). The provider
 * itself knows no platform. In an instance, a runner does all the work
 * (providers/remote/remote.h). The context is borrowed.
 */
struct provider *exec_provider_create(const struct provider_context *context);

#endif
