/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_PROVISION_H
#define BROKER_AGENT_PROVISION_H

#include "base/pool.h"
#include "broker/config/config.h"

/*
 * Prepares a sandbox before its agent starts: copies the files of `copy`, then runs the lines of
 * `setup`, once per home of a sandbox. Uses only sandbox_exec. Logs what it does. Loop thread.
 */
struct provision;

enum { COPY_FILE_MAX = 1024 * 1024 }; // bytes of one file

struct provision_config {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;       // ready
	const struct profile *profile; // borrowed, like the next ones
	const char *subject;           // for the log
	/*
	 * Lines of a workspace's file, instead of all that the profile brings. They run in
	 * `directory`, a path there, without the profile's variables. Both may be NULL.
	 */
	const struct sandbox_setup *setup;
	const char *directory;
};

/* Whether the profile has `copy` or `setup`. */
bool provision_is_needed(const struct profile *profile);

/*
 * Calls done exactly once, after this returns; never if it is destroyed first. Errors: SETUP_FAILED
 * with the line (or its name) or the file and its last output; TIMEOUT_EXCEEDED (setup-timeout for
 * the lines, a minute for each file); errors of the sandbox.
 */
struct provision *provision_start(
	const struct provision_config *config, sandbox_done *done, void *data);

/* Ends what runs; no callback follows. NULL is fine. */
void provision_destroy(struct provision *provision);

#endif
