/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_POLICY_EXPLAIN_H
#define BROKER_CLI_POLICY_EXPLAIN_H

#include "base/attr.h"
#include "broker/config/config.h"

/*
 * `acp-broker policy explain`: prints the policy's decision about an operation, and the line that
 * decides; policy_hosts.h does this for connections. The session's directory is --workspace or the
 * working directory. It does nothing and asks nobody. It does not know the user's "always" answers
 * in a session; _broker/policy/explain does. ERROR_CONFIG for wrong arguments.
 */
bool policy_explain_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

#endif
