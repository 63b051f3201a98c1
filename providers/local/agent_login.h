/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_AGENT_LOGIN_H
#define PROVIDERS_LOCAL_AGENT_LOGIN_H

#include <ev.h>

#include "base/attr.h"
#include "base/pool.h"
#include "providers/local/agent_home.h"

/*
 * Keeps a confined agent's login equal to the login in the user's home while a cell runs. This is
 * necessary because a service accepts each refresh token only once: after one side refreshes, the
 * other side would be logged out. The side with the newer login (agent_file.newer) overwrites the
 * other one. In the user's file only a few listed keys are updated, and only if they exist; the
 * file is never created. The content of the cell's file is hostile. Loop thread; a worker reads and
 * writes the files.
 */
struct agent_login;

/*
 * Call this when the cell is ready. `cell_fd` is the cell's home; it is duplicated. Returns NULL if
 * the agent has no login that can be copied back. Failures are only logged.
 */
struct agent_login *agent_login_start(struct ev_loop *loop, struct pool *pool,
	const struct agent_home *agent, int cell_fd) ATTR_NODISCARD;

/*
 * Compares the files once more, then frees `login`, either now or when its worker has finished.
 * NULL is fine.
 */
void agent_login_end(struct agent_login *login);

#endif
