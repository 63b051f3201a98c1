/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_INIT_H
#define BROKER_CLI_INIT_H

#include <ev.h>

#include "base/attr.h"
#include "base/pool.h"
#include "base/spawner.h"
#include "broker/config/options.h"
#include "providers/provider.h"

/*
 * `acp-broker init`: writes a newcomer's profile, and the settings of an editor. It asks on the
 * terminal for everything that the options do not give. It shows each change as a diff, and only
 * adds.
 */
struct init_means {
	const struct options *options;
	const char *const *environment;
	const struct registry *registry;
	bool (*add_providers)(struct registry *registry, const struct provider_context *context,
		struct error *err);
	struct ev_loop *loop;
	struct spawner *spawner;
	struct pool *pool;
};

/*
 * Prints to stdout. Fails with ERROR_CONFIG if options are missing or the configuration is wrong.
 */
bool init_run(const struct init_means *means, struct error *err) ATTR_NODISCARD;

#endif
