/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_HEIR_H
#define BROKER_CLI_HEIR_H

#include "broker/config/config.h"
#include "providers/provider.h"

/*
 * This program as the heir of a killed broker (providers/heir.h). For each profile that the command
 * line names, it ends what killed brokers have left running there. It logs what it does; often
 * nobody sees that.
 */

enum { HEIR_WORDS = 2 }; // of each profile

/* How many profiles the command line names; 0: it is not an heir's. */
int heir_count(int argc, char *const *argv);

/*
 * Connects only where such processes may still run. False if a profile's take longer than a minute,
 * or cannot be ended; logs why. Runs the loop.
 */
bool heir_run(struct ev_loop *loop, const struct registry *registry, const struct config *config,
	char *const *argv, int count) ATTR_NODISCARD;

#endif
