/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LOGIN_H
#define BROKER_LOGIN_H

#include <ev.h>

#include "base/attr.h"
#include "base/error.h"
#include "broker/config.h"
#include "providers/provider.h"

/*
 * Terminal authentication (ACP, "Authentication", methods of type terminal): a
 * person runs the agent's own login in a terminal. The editor does so by running
 * its agent command, which is this broker, with the method's args and env added;
 * the broker has put this variable there. Its value is the number of words at
 * the end of the command line that are the agent's.
 */
#define LOGIN_MARK "ACP_BROKER_LOGIN"

enum { LOGIN_WORDS_MAX = 1000 };

/* The value of the mark: its count of words, or -1 where it is no such number. */
int login_words(const char *mark);

/*
 * Runs the profile's agent in the sandbox, on the caller's own terminal, and
 * waits for it. Sets *out_status to its exit status (128 + the
 * signal where one ended it).
 */
bool login_run(struct ev_loop *loop, struct provider *provider, const struct profile *profile,
	int *out_status, struct error *err) ATTR_NODISCARD;

#endif
