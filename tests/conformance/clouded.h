/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_CLOUDED_H
#define TESTS_CONFORMANCE_CLOUDED_H

#include <stdbool.h>

#include "providers/provider.h"

/*
 * The provider of daytona. Its service is the stand-in in tests/support/daytona, which is started
 * with the first provider and serves all cases.
 */
struct provider *clouded_provider_create(
	const struct provider_context *context, const char *folder);

/* Whether what the stand-in is made of is installed (npm ci in tests/support/daytona). */
bool clouded_can_start(void);

/* Ends the stand-in, if there is one. */
void clouded_finish(void);

#endif
