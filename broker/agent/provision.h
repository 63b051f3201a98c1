/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_PROVISION_H
#define BROKER_AGENT_PROVISION_H

#include "base/pool.h"
#include "broker/config/config.h"

/*
 * What a profile wants to be in a sandbox before its agent is started there: the files of
 * `copy`, then the lines of `setup`, which are run once in a sandbox's home. Done with
 * sandbox_exec alone. What it does is logged. Loop thread.
 */
struct provision;

enum { COPY_FILE_MAX = 1024 * 1024 }; // bytes of one file

struct provision_config {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;       // ready
	const struct profile *profile; // borrowed, as the subject
	const char *subject;           // for the log
};

/* Whether there is anything to be done. */
bool provision_is_needed(const struct profile *profile);

/*
 * Raises done exactly once, and not before it returns, unless it is destroyed before. Errors:
 * SETUP_FAILED with the line or the file and the last words of what failed,
 * TIMEOUT_EXCEEDED (setup-timeout, for the lines; a minute, for each file), those of the sandbox.
 */
struct provision *provision_start(
	const struct provision_config *config, sandbox_done *done, void *data);

/* Ends what runs; raises nothing more. NULL is fine. */
void provision_destroy(struct provision *provision);

#endif
