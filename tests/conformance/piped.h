/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_PIPED_H
#define TESTS_CONFORMANCE_PIPED_H

#include "providers/provider.h"

/* The SSH sandbox over pipes instead of a connection; workspaces lie below the folder. */
struct provider *piped_provider_create(const struct provider_context *context, const char *folder);
/* The same, but the stderr of each process has a separate channel. */
struct provider *piped_provider_create_runner(
	const struct provider_context *context, const char *folder);
struct provider *piped_provider_create_apart(
	const struct provider_context *context, const char *folder);

#endif
