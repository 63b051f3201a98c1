/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_AGENT_LOGIN_H
#define PROVIDERS_LOCAL_AGENT_LOGIN_H

#include <ev.h>

#include "base/attr.h"
#include "base/pool.h"
#include "providers/local/agent_home.h"

/*
 * Keeps the login of a confined agent and that of the user's home the same while a cell runs:
 * services give a token that refreshes a login once, so that whoever has the old one is logged out.
 * The side with the newer login (agent_file.newer) gives it to the other one. The user's file gets
 * the values of a few named keys where it has them already; it is never made. What the cell's file
 * holds is hostile. Loop thread; the files are read and written by a worker.
 */
struct agent_login;

/*
 * From when the cell is ready on. `cell_fd` is its home, which is duplicated. NULL where the agent
 * has no login that could come back. Failures are no reason to stop anything: they are in the log.
 */
struct agent_login *agent_login_start(struct ev_loop *loop, struct pool *pool,
	const struct agent_home *agent, int cell_fd) ATTR_NODISCARD;

/* Looks for the last time and frees it, now or when its worker has ended. NULL is fine. */
void agent_login_end(struct agent_login *login);

#endif
