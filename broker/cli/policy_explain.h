/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_POLICY_EXPLAIN_H
#define BROKER_CLI_POLICY_EXPLAIN_H

#include "base/attr.h"
#include "broker/config/config.h"

/*
 * `acp-broker policy explain`: prints what the policy of a profile decides about an operation, and
 * by which line. The session's directory is --workspace or the working directory. Does nothing and
 * asks nobody. It does not know the user's "always" answers in a session; _broker/policy/explain
 * does. ERROR_CONFIG for a mistake in the words.
 */
bool policy_explain_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

#endif
