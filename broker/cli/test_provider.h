/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_TEST_PROVIDER_H
#define BROKER_CLI_TEST_PROVIDER_H

#include "broker/config/config.h"
#include "providers/provider.h"
#include "sync/transport.h"

/*
 * acp-broker test-provider: tests on the profile's own sandbox everything that the broker needs of
 * one. Works in a scratch workspace, which it removes here and in the sandbox; touches nothing
 * else.
 */
enum trial_part {
	TRIAL_SANDBOX,
	TRIAL_PROCESSES,
	TRIAL_FILES,
	TRIAL_NETWORK,
	TRIAL_SYNC,
	TRIAL_REMOVAL,
	TRIAL_PART_COUNT,
};

enum trial_outcome_kind { TRIAL_OK, TRIAL_FAILED, TRIAL_SKIPPED };

/* A check and its outcome; borrowed until the call returns. */
struct trial_finding {
	const char *name;
	enum trial_part part;
	enum trial_outcome_kind outcome;
	const char *code; // why it failed (docs/errors.md)
	const char *text; // why it failed or was skipped; else what it found, or ""
};

/*
 * Gets the findings one by one; then nothing is printed to stdout. Of the cases for processes and
 * files, only the basic ones run.
 */
struct test_provider_listener {
	void (*on_finding)(void *data, const struct trial_finding *finding);
	/* Something that the profile asks for and the sandbox cannot enforce. */
	void (*on_warning)(void *data, const char *text);
};

struct test_provider_means {
	struct ev_loop *loop;
	struct pool *pool;
	struct provider *provider;
	const struct config *config;
	const char *const *environment;
	const struct transport_tools *tools;
	bool is_json;
	const struct test_provider_listener *listener; // NULL: print the findings
	void *data;
};

/*
 * Runs the checks one after the other and prints each to stdout. Runs the loop meanwhile. False
 * with the error if nothing could be tried; else *out_failed is the number of failed checks.
 */
bool test_provider_run(const struct test_provider_means *means, size_t *out_failed,
	struct error *err) ATTR_NODISCARD;

#endif
