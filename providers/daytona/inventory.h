/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_INVENTORY_H
#define PROVIDERS_DAYTONA_INVENTORY_H

#include "providers/provider.h"

struct daytona_shared;

/* Implements provider_inventory: lists every sandbox with this user's label, of any profile. */
bool daytona_inventory(struct daytona_shared *shared, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err) ATTR_NODISCARD;

/* Implements provider_describe: the settings, and whether the API accepts the key. */
bool daytona_describe(struct daytona_shared *shared, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
