/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_EXEC_H
#define BROKER_CLI_EXEC_H

#include <ev.h>

#include "base/attr.h"
#include "base/error.h"
#include "broker/config/options.h"
#include "providers/provider.h"

/*
 * `acp-broker exec PROMPT|-`: one prompt in a session of its own, with this very program as the
 * broker (broker/client). The answer goes to stdout, everything else to stderr. Nobody is
 * asked: the policy decides, and what asks all the same is refused.
 */
enum { EXEC_CANCEL_MS = 10 * 1000 }; // for a cancelled prompt's answer; then the session is ended

/* The exit status, by the reason for which the turn has ended. */
enum exec_status {
	EXEC_END_TURN = 0,
	EXEC_MAX_TOKENS = 3,
	EXEC_MAX_TURN_REQUESTS = 4,
	EXEC_REFUSAL = 5,
	EXEC_CANCELLED = 130, // also where the reader of stdout is gone
};

struct exec_means {
	const struct options *options;
	const char *const *environment;
	const struct registry *registry;
	struct ev_loop *loop;
};

/*
 * Runs it to its end, signals included. False where something failed: `err` is for people, and
 * ERROR_CONFIG is a mistake of whoever typed it. *out_status may be a failure that the broker has
 * told on stderr itself. SIGPIPE is ignored.
 */
bool exec_run(const struct exec_means *means, int *out_status, struct error *err) ATTR_NODISCARD;

#endif
