/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_TEST_PROVIDER_H
#define BROKER_CLI_TEST_PROVIDER_H

#include "broker/config/config.h"
#include "providers/provider.h"
#include "sync/transport.h"

/*
 * acp-broker test-provider: what the broker needs of a sandbox, tried on the profile's own. Works
 * in a scratch workspace of its own, which is removed here and there; touches nothing else.
 */
struct test_provider_means {
	struct ev_loop *loop;
	struct pool *pool;
	struct provider *provider;
	const struct config *config;
	const char *const *environment;
	const struct transport_tools *tools;
	bool is_json;
};

/*
 * Runs the checks one after the other and prints each, to stdout. The loop turns until it is done.
 * False with the error where it could not be tried at all; otherwise *out_failed says how many
 * did not go well.
 */
bool test_provider_run(const struct test_provider_means *means, size_t *out_failed,
	struct error *err) ATTR_NODISCARD;

#endif
