/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SLURM_SLURM_H
#define PROVIDERS_SLURM_SLURM_H

#include "providers/provider.h"

/*
 * The provider for jobs of a Slurm cluster. It knows which commands submit, cancel and list a job,
 * and what they print (commands.h). providers/exec/platform.h does everything else, including the
 * wait in the queue and all work inside the job. The context is borrowed.
 */
struct provider *slurm_provider_create(const struct provider_context *context);

#endif
