/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_DESCRIBE_H
#define PROVIDERS_SSH_DESCRIBE_H

#include "base/attr.h"
#include "base/settings.h"
#include "providers/provider.h"

/*
 * Says where and how a profile would connect: the target that its keys lead to (provider_describe).
 */
bool ssh_describe(const struct provider_context *context, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
