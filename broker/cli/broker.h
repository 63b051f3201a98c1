/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_BROKER_H
#define BROKER_CLI_BROKER_H

/*
 * This folder is the program: main(), the user's commands, and the loop that relays. It knows every
 * other folder. Only tests include it. Only main.c knows which providers exist. No command acts on
 * a running broker's session directly: it uses the ledger.
 */

#include "base/attr.h"
#include "base/error.h"
#include "providers/provider.h"

/*
 * The whole program. `environment` is the process's own, NULL-terminated. broker_main returns the
 * exit status: 0, 1 for a failure, 2 for a usage or configuration mistake; for a terminal login,
 * the agent's exit status.
 */
struct broker_providers {
	/* Adds the providers of this build to the registry. */
	bool (*add)(struct registry *registry, const struct provider_context *context,
		struct error *err);
};

int broker_main(int argc, char **argv, const char *const *environment,
	const struct broker_providers *providers);

#endif
