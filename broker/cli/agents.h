/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_AGENTS_H
#define BROKER_CLI_AGENTS_H

#include <ev.h>

#include "base/attr.h"
#include "base/spawner.h"
#include "broker/config/options.h"

/*
 * `acp-broker agents`: lists the agents that this program knows and those of the configuration,
 * each with the path of its program on this machine. It runs the known agents to learn their
 * versions. It runs no other program, because an unknown program could do anything with
 * `--version`.
 */
struct agents_means {
	const struct options *options;
	const char *const *environment;
	struct ev_loop *loop;
	struct spawner *spawner;
};

/*
 * Runs the loop until every version is known or AGENTS_VERSION_MS has passed, and prints to stdout.
 * ERROR_CONFIG if the configuration cannot be read.
 */
bool agents_run(const struct agents_means *means, struct error *err) ATTR_NODISCARD;

enum { AGENTS_VERSION_MS = 10000 };

#endif
