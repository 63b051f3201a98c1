/* SPDX-License-Identifier: MIT */
#ifndef BASE_CAPTURE_H
#define BASE_CAPTURE_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/process.h"
#include "base/span.h"

/*
 * Runs a short program and collects its output. Loop thread; does not block.
 */
struct capture;

struct capture_spec {
	const char *const *argv; // as in struct process_spec
	const char *const *env;
	const char *cwd;
	const char *in; // what it finds in its stdin; NULL: nothing
	size_t out_max; // bytes of stdout; more fails with ERROR_LIMIT, or is dropped if out_is_cut
	bool out_is_cut;
	bool is_secret;      // the output is a secret: it is wiped from memory after `done`
	size_t err_max;      // of stderr; the rest is dropped
	bool leaves_daemons; // no guard kills what it leaves: base/detached.h; needs no spawner
	/*
	 * Gets each part of both outputs as it comes, with the data of capture_start; nothing of
	 * them is kept then. It must not cancel the capture. NULL: they are kept.
	 */
	void (*on_part)(void *data, struct span part);
	long long timeout_ms;
};

/* Borrowed, until the callback returns. */
struct capture_result {
	struct process_status status;
	struct span out;
	struct span err;
};

/*
 * Called once, never before capture_start returns. `result` holds the output up to the end of the
 * program; processes that it left running are killed, unless it leaves_daemons. If the program
 * could not start or was killed, `result` is NULL and `err` says why: a failed start as process.h
 * describes it, ERROR_LIMIT, or ERROR_TIMEOUT. The capture is already freed by then.
 */
typedef void capture_done(void *data, const struct capture_result *result, const struct error *err);

/* The spec is copied. */
struct capture *capture_start(struct ev_loop *loop, struct spawner *spawner,
	const struct capture_spec *spec, capture_done *done, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * Cancels a capture whose `done` was not called: kills the program; `done` is not called. NULL is
 * fine.
 */
void capture_cancel(struct capture *capture);

#endif
