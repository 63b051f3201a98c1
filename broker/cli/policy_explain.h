/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_POLICY_EXPLAIN_H
#define BROKER_CLI_POLICY_EXPLAIN_H

#include "base/attr.h"
#include "broker/config/config.h"

/*
 * `acp-broker policy explain`: what the policy of a profile says to an operation in a session
 * whose directory is --workspace or the working directory, and which line says so. Nothing is
 * asked or done. What the user has answered in a session with "always" is not known here:
 * _broker/policy/explain knows it. ERROR_CONFIG for what is wrong in the words.
 */
bool policy_explain_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

#endif
