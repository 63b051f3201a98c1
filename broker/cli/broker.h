/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_BROKER_H
#define BROKER_CLI_BROKER_H

/*
 * This folder is the program: main(), the commands that the user types, and the loop that relays.
 * It knows every other folder. Only tests include it. Only main.c knows which
 * providers there are. No command works on a session of a broker that runs: it asks the ledger.
 */

#include "base/attr.h"
#include "base/error.h"
#include "providers/provider.h"

/*
 * The whole program. `environment` is the process's own, NULL-terminated. The
 * return value is the exit status: 0, 1 for a failure, 2 for a usage or
 * configuration mistake; of a terminal login, the agent's.
 */
struct broker_providers {
	/* Adds the providers of this build to the registry. */
	bool (*add)(struct registry *registry, const struct provider_context *context,
		struct error *err);
};

int broker_main(int argc, char **argv, const char *const *environment,
	const struct broker_providers *providers);

#endif
