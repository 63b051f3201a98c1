/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_EXEC_H
#define BROKER_CLI_EXEC_H

#include <ev.h>

#include "base/attr.h"
#include "base/error.h"
#include "broker/config/options.h"
#include "providers/provider.h"

/*
 * `acp-broker exec PROMPT|-`: runs one prompt in its own session, with this very program as the
 * broker (broker/client). Prints the answer to stdout, everything else to stderr. Asks nobody: the
 * policy decides, and every request that the policy would ask about is refused.
 */
enum { EXEC_CANCEL_MS = 10 * 1000 }; // for the answer of a cancelled prompt

/* The exit status, by the stop reason of the turn. */
enum exec_status {
	EXEC_END_TURN = 0,
	EXEC_MAX_TOKENS = 3,
	EXEC_MAX_TURN_REQUESTS = 4,
	EXEC_REFUSAL = 5,
	EXEC_CANCELLED = 130, // also if the reader of stdout has gone
};

struct exec_means {
	const struct options *options;
	const char *const *environment;
	const struct registry *registry;
	struct ev_loop *loop;
};

/*
 * Runs the prompt to its end, and handles signals. False if something failed: `err` is for people;
 * ERROR_CONFIG is a mistake in the command line. *out_status may be a failure that the broker has
 * reported on stderr itself. Ignores SIGPIPE.
 */
bool exec_run(const struct exec_means *means, int *out_status, struct error *err) ATTR_NODISCARD;

#endif
