/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_BOXED_H
#define TESTS_CONFORMANCE_BOXED_H

#include "providers/provider.h"

/*
 * The provider for any platform, with one whose boxes are folders of this machine
 * (tests/support/exec/box.sh).
 */
struct provider *boxed_provider_create(const struct provider_context *context, const char *folder);

/* The provider for jobs, in the cluster to which SLURM_CONF leads (tests/support/slurm). */
struct provider *boxed_provider_create_slurm(
	const struct provider_context *context, const char *folder);

#endif
