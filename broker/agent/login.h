/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_LOGIN_H
#define BROKER_AGENT_LOGIN_H

#include <ev.h>

#include "base/attr.h"
#include "base/error.h"
#include "broker/agent/login_note.h"
#include "broker/config/config.h"
#include "providers/provider.h"

/*
 * Terminal authentication (ACP, "Authentication", methods of type terminal): the user runs the
 * agent's own login in a terminal. The editor runs its agent command, which is this broker, with
 * the method's args and env added. The broker has put this variable into that env. Its value is the
 * token of a note (broker/agent/login_note.h) with the agent's args and env.
 */
#define LOGIN_MARK "ACP_BROKER_LOGIN"

struct login_request {
	struct ev_loop *loop;
	struct provider *provider;
	const struct profile *profile;
	const struct login_note *note;
	const char *terminal_type; // the variable TERM; NULL: not set
};

/*
 * Runs the profile's agent in the sandbox, with the args and env of the note, on the caller's own
 * terminal, and waits for it. Elsewhere it gets a terminal there, for which the caller's stands
 * (login_terminal.h). Sets *out_status to its exit status (128 + the number of the signal that
 * ended it). If somebody breaks the loop before that, it is EXIT_FAILURE.
 */
bool login_run(
	const struct login_request *request, int *out_status, struct error *err) ATTR_NODISCARD;

#endif
