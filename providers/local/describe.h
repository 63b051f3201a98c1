/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_DESCRIBE_H
#define PROVIDERS_LOCAL_DESCRIBE_H

#include "providers/provider.h"

/*
 * Implements provider_describe: reports what the profile's keys mean on this machine. Fails
 * whenever sandbox_prepare would fail, for example because the broker's environment lacks a
 * variable.
 */
bool local_describe(const struct provider_context *context, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
