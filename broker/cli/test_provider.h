/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_TEST_PROVIDER_H
#define BROKER_CLI_TEST_PROVIDER_H

#include "broker/config/config.h"
#include "providers/provider.h"
#include "sync/transport.h"

/*
 * acp-broker test-provider: tests in the profile's own sandbox everything that the broker needs of
 * a sandbox. It works in a scratch workspace, which it removes here and in the sandbox, and touches
 * nothing else.
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
 * With a listener, the findings go to it one by one instead of to stdout, and only the basic cases
 * for processes and files run.
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

/*
 * The same in two parts, for a caller that uses the sandbox in between. test_provider_end must
 * follow: it removes what the checks have made, which is the last check. NULL with the error if
 * nothing could be tried. The means are borrowed until the end.
 */
struct trial;
struct trial *test_provider_begin(
	const struct test_provider_means *means, struct error *err) ATTR_NODISCARD;
bool test_provider_end(struct trial *trial, size_t *out_failed, struct error *err) ATTR_NODISCARD;

/*
 * The scratch workspace, empty here and in the sandbox, which stays ready: a session in this
 * workspace uses the same one. NULL if a check failed, if an unused sandbox costs nothing
 * (sandbox_can_rest), and if each broker has its own (transient). Borrowed until the end.
 */
const char *test_provider_offer(struct trial *trial);

/*
 * The session is in the sandbox: whoever ends the session removes it. If the session has another
 * sandbox after all, this begins to remove the one of the checks, and the end waits for that.
 */
void test_provider_hand_over(struct trial *trial);

#endif
