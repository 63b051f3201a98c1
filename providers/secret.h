/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SECRET_H
#define PROVIDERS_SECRET_H

#include "base/error.h"
#include "providers/provider.h"

/*
 * A secret that a configured command prints: the first line of its output, of SECRET_MAX bytes at
 * most. Its stdin is /dev/null, and it has this program's environment and no terminal. What it
 * leaves running is killed. Loop thread; does not block.
 */
enum { SECRET_MAX = 4096 };

struct secret_query;

struct secret_spec {
	const char *what; // for errors: "passphrase-command"; borrowed until the end
	const char *line; // for /bin/sh
	const char *cwd;  // absolute
	long long timeout_ms;
};

/*
 * `secret` is the callee's to pass to mem_wipe_free; NULL with err. Raised once, not before
 * secret_query_start returns. Errors name what the command said on stderr, and never its output:
 * ERROR_UNAVAILABLE for one that failed or printed nothing, ERROR_LIMIT for a line that is too
 * long, ERROR_TIMEOUT (TIMEOUT_EXCEEDED), after which the command was killed, and what process.h
 * says of a start that failed.
 */
typedef void secret_done(void *data, char *secret, const struct error *err);

struct secret_query *secret_query_start(const struct provider_context *context,
	const struct secret_spec *spec, secret_done *done, void *data,
	struct error *err) ATTR_NODISCARD;

/* Before done: kills the command and raises nothing. NULL is fine. */
void secret_query_cancel(struct secret_query *query);

#endif
