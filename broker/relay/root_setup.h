/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_ROOT_SETUP_H
#define BROKER_RELAY_ROOT_SETUP_H

#include "broker/session/hop.h"

/*
 * Runs the lines that a workspace's own file names (sandbox_setup), once its files are in the
 * sandbox and before a session is opened there.
 */
struct root_setup;

/* Whether the agent's sandbox, which is ready, has such lines that have not run yet. */
bool root_setup_is_needed(const struct peer *peer);

/*
 * NULL if there is nothing to run for a session in this directory, which is a root. Otherwise done
 * follows exactly once, after this returns; then the setup is freed. If it is destroyed first, done
 * is never called. SETUP_FAILED and TIMEOUT_EXCEEDED as in provision.h.
 */
struct root_setup *root_setup_start(
	struct peer *peer, const char *directory, sandbox_done *done, void *data);

/* Ends what runs; no callback follows. NULL is fine. */
void root_setup_destroy(struct root_setup *setup);

#endif
