/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_CHAT_H
#define BROKER_CHAT_CHAT_H

/*
 * This folder is `acp-broker chat`: a person in a terminal talks with an agent. It knows the
 * terminal, and what of ACP a person sees and answers. It is a client that starts a broker
 * (broker/client); it does not know any part of the relay, nor the command line, and the relay
 * does not know of it. broker/cli uses it.
 */

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

enum {
	CHAT_PROMPT_MAX = 1024 * 1024, // bytes of one
	CHAT_INTERRUPTED = 130,        // the exit status where Ctrl-C or a signal ended it
};

struct chat_means {
	struct ev_loop *loop;
	const char *const *argv;        // of the broker; argv[0] is its path
	const char *const *environment; // its, and TERM and NO_COLOR for the terminal
	const char *const *options;     // of a command on the workspace's store
	const char *resume;             // a session's id; "": the latest; NULL: a new one
	const char *cwd;                // of the session; absolute
	size_t max_message;             // bytes of one from the broker
};

/*
 * Runs it to its end, signals included; the terminal is then what it was. Without a terminal each
 * line of stdin is a prompt, and what the agent asks is refused. False where something failed;
 * *out_status may be a failure that was printed. SIGPIPE is ignored. Once a process.
 */
bool chat_run(const struct chat_means *means, int *out_status, struct error *err) ATTR_NODISCARD;

#endif
