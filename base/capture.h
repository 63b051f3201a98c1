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
 * A short program that is run for what it prints. Its stdin is /dev/null. Loop thread; does
 * not block.
 */
struct capture;

struct capture_spec {
	const char *const *argv; // as in struct process_spec
	const char *const *env;
	const char *cwd;
	size_t out_max; // bytes of stdout; more is ERROR_LIMIT, or dropped where that is_cut
	bool out_is_cut;
	bool is_secret; // what it prints: nothing of it is left in memory after done
	size_t err_max; // of stderr; what comes after them is dropped
	long long timeout_ms;
};

/* Borrowed, until the callback returns. */
struct capture_result {
	struct process_status status;
	struct span out;
	struct span err;
};

/*
 * Raised once, not before capture_start returns, when the program has ended: what it printed
 * until then, whatever it may have left running is killed. Otherwise `result` is NULL and `err`
 * says why: what process.h says of a start that failed; ERROR_LIMIT; ERROR_TIMEOUT, after
 * which the program was killed. The capture is gone by then.
 */
typedef void capture_done(void *data, const struct capture_result *result, const struct error *err);

/* The spec is copied. */
struct capture *capture_start(struct ev_loop *loop, struct spawner *spawner,
	const struct capture_spec *spec, capture_done *done, void *data,
	struct error *err) ATTR_NODISCARD;

/* Before done: kills the program and raises nothing. NULL is fine. */
void capture_cancel(struct capture *capture);

#endif
