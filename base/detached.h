/* SPDX-License-Identifier: MIT */
#ifndef BASE_DETACHED_H
#define BASE_DETACHED_H

#include <ev.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/process.h"

/*
 * Runs a program that may leave a daemon. A guard kills everything that its process leaves behind
 * (base/process.h), but the daemon of a container has to go on. So this program is not a descendant
 * of the broker:
 *
 *     broker ── control socket ── supervisor (init's child) ── program
 *
 * The program is in a session of its own. When the handle is destroyed, or the broker ends for any
 * reason, the supervisor kills the program's process group and ends. A process that has left the
 * group goes on. Loop thread; blocks for the time of two forks.
 */
struct detached;

/*
 * Like process_start, but uses only argv, env, cwd, in, out and err of the spec.
 * Raises either on_failed or on_exited, once; nobody watches the program's descendants, so
 * on_emptied is never raised.
 */
struct detached *detached_start(struct ev_loop *loop, const struct process_spec *spec,
	const struct process_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* Frees it. If the program runs, kills its process group and raises nothing. NULL is fine. */
void detached_destroy(struct detached *detached);

#endif
