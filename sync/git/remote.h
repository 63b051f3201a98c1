/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_REMOTE_H
#define SYNC_GIT_REMOTE_H

#include "base/pool.h"
#include "providers/provider.h"

/*
 * Runs one script in the sandbox, with blocking work at its other end. The script runs by
 * sandbox_exec, the work on the pool. The loop passes the bytes between the two. So it notices when
 * one of them stalls, and can stop both at any time.
 */
struct remote_ends {
	int in;  // the script's stdout: blocking; ends when the script does
	int out; // the script's stdin: blocking; the work closes it after its last write
};

struct remote_step {
	const char *const
		*argv; // NULL-terminated, borrowed until remote_start returns; NULL: no script
	/* Worker thread. Returns true for success, whatever the script's status. */
	bool (*work)(void *data, struct remote_ends *ends, struct error *err);
	/* Loop thread; err is NULL for success. The remote is already freed. */
	void (*done)(void *data, const struct error *err);
	void (*drop)(void *data); // after remote_leave, called instead of done: frees the data
	void *data;
	long long timeout_ms; // without a byte from or to the script while the work waits for it
};

struct remote;

/*
 * Calls done exactly once, but never before remote_start returns; never if remote_start fails.
 * Kills the script's process tree before that. Errors: ERROR_TIMEOUT; the work's error with the
 * script's last output on stderr; the error of the exec.
 */
struct remote *remote_start(struct ev_loop *loop, struct pool *pool, struct sandbox *sandbox,
	const struct remote_step *step, struct error *err) ATTR_NODISCARD;

/*
 * Stops both sides and kills the script now. Then `drop` is called instead of `done`, once the work
 * has ended; at once if it has ended already.
 */
void remote_leave(struct remote *remote);

#endif
