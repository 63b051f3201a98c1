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

/* A check and what came of it; borrowed until the call returns. */
struct trial_finding {
	const char *name;
	enum trial_part part;
	enum trial_outcome_kind outcome;
	const char *code; // of what failed (docs/errors.md)
	const char *text; // why it failed or was skipped; otherwise what was found, or ""
};

/*
 * For who wants them one by one, in place of the lines on stdout. Of the cases of processes and
 * files only the basic ones are run then.
 */
struct test_provider_listener {
	void (*on_finding)(void *data, const struct trial_finding *finding);
	/* What the profile asks for and the sandbox cannot enforce. */
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
	const struct test_provider_listener *listener; // NULL: the findings are printed
	void *data;
};

/*
 * Runs the checks one after the other and prints each, to stdout. The loop turns until it is done.
 * False with the error where it could not be tried at all; otherwise *out_failed says how many
 * did not go well.
 */
bool test_provider_run(const struct test_provider_means *means, size_t *out_failed,
	struct error *err) ATTR_NODISCARD;

#endif
