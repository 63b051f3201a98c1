/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_CLOUDED_H
#define TESTS_CONFORMANCE_CLOUDED_H

#include <stdbool.h>

#include "providers/provider.h"

/*
 * The daytona provider with scripts. Its service is the stand-in in tests/support/daytona, which
 * starts with the first provider and serves all cases.
 */
struct provider *clouded_provider_create(
	const struct provider_context *context, const char *folder);

/* The same with a runner. If no runner can be used, the cases fail. */
struct provider *clouded_provider_create_runner(
	const struct provider_context *context, const char *folder);

/* Whether the stand-in's packages are installed (npm ci in tests/support/daytona). */
bool clouded_can_start(void);

/* Ends the stand-in if it runs. */
void clouded_finish(void);

#endif
