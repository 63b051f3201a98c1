/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_CHAT_H
#define BROKER_CHAT_CHAT_H

/*
 * This folder is `acp-broker chat`: a person in a terminal talks with an agent. It knows the
 * terminal and the ACP messages that a person sees and answers. It is an ACP client that starts a
 * broker as its agent (broker/client). It knows neither the relay nor the command line, and the
 * relay does not know it. broker/cli uses it.
 */

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

enum {
	CHAT_PROMPT_MAX = 1024 * 1024, // bytes of one prompt
	CHAT_INTERRUPTED = 130,        // the exit status if Ctrl-C or a signal ended the chat
};

struct chat_means {
	struct ev_loop *loop;
	const char *const *argv;        // starts the broker; argv[0] is its path
	const char *const *environment; // of the broker; chat itself reads TERM and NO_COLOR in it
	const char *const *options;     // added to each command on the workspace's store
	const char *resume;             // a session's id; "": the latest session; NULL: a new one
	const char *cwd;                // the session's directory; absolute
	size_t max_message;             // bytes of one message from the broker
	const struct error_reason *reasons; // that only the provider's errors have; static
	size_t reason_count;
};

/*
 * Runs the chat until it ends, handles signals meanwhile, and gives the terminal back as it was. If
 * stdin is not a terminal, each line of it is a prompt, and every question is refused. False: the
 * chat failed, and the caller prints the error. Otherwise *out_status is the exit status; if it is
 * not 0, the chat has printed why. Ignores SIGPIPE. At most once in a process.
 */
bool chat_run(const struct chat_means *means, int *out_status, struct error *err) ATTR_NODISCARD;

#endif
