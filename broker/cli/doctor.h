/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_DOCTOR_H
#define BROKER_CLI_DOCTOR_H

#include <ev.h>

#include "base/attr.h"
#include "base/secrets.h"
#include "broker/config/config.h"
#include "providers/provider.h"
#include "sync/transport.h"

/*
 * `acp-broker doctor`: does what a session does, step by step, in a scratch workspace. For each
 * step it reports that it went well, or what is wrong and the one thing to do. It tests the sandbox
 * as test-provider does. For the session it is a client (broker/client) whose agent is this very
 * program with the given options. Doctor only reads the user's workspace, does not touch anything
 * that earlier brokers left, and removes everything that it creates here and in the sandbox.
 */
#define DOCTOR_WORD "__trial" // the first argument of that broker

struct doctor_means {
	const struct options *options;
	const char *const *environment;
	const struct registry *registry;
	struct ev_loop *loop;
	struct pool *pool;
	const struct transport_tools *tools;
	const char *state_folder;         // may be NULL
	const struct secrets *secrets;    // may be NULL
	const struct config *config;      // NULL: it cannot be used
	const struct error *config_error; // why it cannot
};

/*
 * Whether the file systems of the configuration file and of the workspace on the command line
 * respond; if not, every program that reads them would hang. The means need no configuration.
 */
bool doctor_reaches_named(const struct doctor_means *means, struct error *err) ATTR_NODISCARD;

/*
 * Runs the loop meanwhile, and prints to stdout. *out_is_well: a session works. False if nothing
 * could be tried, or if a signal has ended it early.
 */
bool doctor_run(
	const struct doctor_means *means, bool *out_is_well, struct error *err) ATTR_NODISCARD;

#endif
