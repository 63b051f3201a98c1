/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_SSH_H
#define PROVIDERS_SSH_SSH_H

#include "providers/provider.h"

/*
 * A host that ssh reaches: processes by channels of one connection (host.h), files by scripts
 * (files.h), a folder there for each workspace (roots.h). The context is borrowed.
 */
struct provider *ssh_provider_create(const struct provider_context *context);

#endif
