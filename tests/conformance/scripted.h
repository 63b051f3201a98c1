/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_SCRIPTED_H
#define TESTS_CONFORMANCE_SCRIPTED_H

#include "providers/provider.h"

/*
 * Plain local, but for its files: those are served by the scripts that a far sandbox is served
 * by (providers/ssh/files.h), run here.
 */
struct provider *scripted_provider_create(const struct provider_context *context);

#endif
