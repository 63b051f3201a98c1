/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_CHECK_H
#define BROKER_CLI_CHECK_H

#include <ev.h>

#include "base/attr.h"
#include "broker/config/config.h"
#include "providers/provider.h"

/*
 * `acp-broker check`: config_print, which says whether the agent's program was found, and what
 * the provider, which may be NULL, makes of the profile. Runs the loop meanwhile.
 */
bool check_run(struct ev_loop *loop, struct provider *provider, const struct config *config,
	const char *const *environment, bool *out_found, struct error *err) ATTR_NODISCARD;

#endif
