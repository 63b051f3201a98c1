/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_CHECK_H
#define BROKER_CLI_CHECK_H

#include <ev.h>

#include "base/attr.h"
#include "broker/config/config.h"
#include "providers/provider.h"

struct check_means {
	struct ev_loop *loop;
	struct provider *provider; // NULL: the profile names none that there is
	const struct config *config;
	const char *const *environment;
	bool is_json; // one object for programs (docs/schemas/check.json); otherwise lines
};

/*
 * `acp-broker check`: what was understood of the configuration, whether the agent's program was
 * found, and what the provider makes of the profile. Runs the loop meanwhile. Where the provider
 * fails, the lines before are printed; of the object nothing is.
 */
bool check_run(const struct check_means *means, bool *out_found, struct error *err) ATTR_NODISCARD;

#endif
