/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_CHECK_H
#define BROKER_CLI_CHECK_H

#include <ev.h>

#include "base/attr.h"
#include "broker/config/config.h"
#include "providers/provider.h"

struct check_means {
	struct ev_loop *loop;
	struct provider *provider; // NULL: the profile's provider does not exist
	const struct config *config;
	const char *const *environment;
	bool is_json; // print one JSON object (docs/schemas/check.json), not lines
};

/*
 * `acp-broker check`: prints the effective configuration, whether the agent's program was found,
 * and what the provider says about the profile. Runs the loop meanwhile. If the provider fails, the
 * text form has printed the lines up to there; the JSON form prints nothing.
 */
bool check_run(const struct check_means *means, bool *out_found, struct error *err) ATTR_NODISCARD;

#endif
