/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_POLICY_HOSTS_H
#define BROKER_CLI_POLICY_HOSTS_H

#include "base/attr.h"
#include "broker/config/config.h"

/* Commands about hosts. They ask nobody and connect to nobody. ERROR_CONFIG for wrong arguments. */

/* `acp-broker policy list` and `policy forget`: the hosts that the user always allows. */
bool policy_list_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err) ATTR_NODISCARD;
bool policy_forget_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

/*
 * `acp-broker policy explain connect HOST[:PORT]`: prints what the profile's network keys, its
 * policy and the kept answers decide. Does not check whether the backend enforces this; acp-broker
 * check does.
 */
bool policy_hosts_explain(const struct config *config, const struct options *options,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

/* Calls `visit` with "HOST:PORT" for each kept answer, for completions. Ignores failures. */
void policy_hosts_visit(
	const char *const *environment, void (*visit)(void *data, const char *target), void *data);

#endif
