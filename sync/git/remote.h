/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_REMOTE_H
#define SYNC_GIT_REMOTE_H

#include "base/pool.h"
#include "providers/provider.h"

/*
 * One script in the sandbox and the blocking work at its other end: the script
 * runs by sandbox_exec, the work on the pool, and the loop passes the bytes between
 * them, so that it sees whether anything moves and can cut both off at any time.
 */
struct remote_ends {
	int in;  // what the script writes: blocking, ends when it does
	int out; // the script's stdin: blocking; the work closes it when it has written all
};

struct remote_step {
	const char *const
		*argv; // NULL-terminated, borrowed until remote_start returns; NULL: no script
	/* Worker thread. True: all is well, whatever the script's status. */
	bool (*work)(void *data, struct remote_ends *ends, struct error *err);
	/* Loop thread; NULL: all is well. The remote is gone by then. */
	void (*done)(void *data, const struct error *err);
	void (*drop)(void *data); // in its place, after remote_leave: frees the data
	void *data;
	long long timeout_ms; // without a byte from or to the script while it is waited for
};

struct remote;

/*
 * Raises done exactly once, but not before it returns; never, where it fails itself. The
 * script's tree is killed before done. Errors: ERROR_TIMEOUT, what the work said
 * with the script's last words on stderr, what the exec said.
 */
struct remote *remote_start(struct ev_loop *loop, struct pool *pool, struct sandbox *sandbox,
	const struct remote_step *step, struct error *err) ATTR_NODISCARD;

/*
 * Cuts both sides off and kills the script now. Drop follows in place of done: once the work has
 * ended, at once where it has already.
 */
void remote_leave(struct remote *remote);

#endif
