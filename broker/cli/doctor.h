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
 * step it reports that it went well, or what is wrong and the one thing to do. The sandbox is
 * tested as by test-provider. The session is that of a client (broker/client) whose agent is this
 * very program with the given options. The user's workspace is only read, what earlier brokers left
 * is not touched, and what doctor creates here and in the sandbox is removed.
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
 * Runs the loop meanwhile, and prints to stdout. *out_is_well: a session works. False if nothing
 * could be tried, or if a signal has ended it early.
 */
bool doctor_run(
	const struct doctor_means *means, bool *out_is_well, struct error *err) ATTR_NODISCARD;

#endif
