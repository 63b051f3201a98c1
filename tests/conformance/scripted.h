/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_SCRIPTED_H
#define TESTS_CONFORMANCE_SCRIPTED_H

#include "providers/provider.h"

/*
 * The local provider, except for its files: the scripts of a remote sandbox (providers/ssh/files.h)
 * serve them, run here.
 */
struct provider *scripted_provider_create(const struct provider_context *context);

#endif
