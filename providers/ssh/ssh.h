/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_SSH_H
#define PROVIDERS_SSH_SSH_H

#include "providers/provider.h"

/*
 * The provider for hosts that ssh reaches: processes run over channels of one connection (host.h),
 * scripts handle files (files.h), and each workspace has a folder there (roots.h). The context is
 * borrowed.
 */
struct provider *ssh_provider_create(const struct provider_context *context);

#endif
