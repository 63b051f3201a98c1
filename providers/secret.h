/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SECRET_H
#define PROVIDERS_SECRET_H

#include "base/error.h"
#include "providers/provider.h"

/*
 * Reads a secret from a configured command: the first line of its output, at most SECRET_MAX bytes.
 * The command gets this program's environment, /dev/null as stdin, and no terminal. Processes that
 * it leaves are killed. Loop thread; does not block.
 */
enum { SECRET_MAX = 4096 };

struct secret_query;

struct secret_spec {
	const char *what; // the key's name for errors: "passphrase-command"; borrowed until the end
	const char *line; // for /bin/sh
	const char *cwd;  // absolute
	long long timeout_ms;
};

/*
 * The callee passes `secret` to mem_wipe_free; it is NULL if err is set. Raised once, not before
 * secret_query_start returns. Errors quote the command's stderr, never its output.
 * ERROR_UNAVAILABLE: it failed or printed nothing. ERROR_LIMIT: the line is too long. ERROR_TIMEOUT
 * (TIMEOUT_EXCEEDED): it was killed. A failed start has the errors of base/process.h.
 */
typedef void secret_done(void *data, char *secret, const struct error *err);

struct secret_query *secret_query_start(const struct provider_context *context,
	const struct secret_spec *spec, secret_done *done, void *data,
	struct error *err) ATTR_NODISCARD;

/* Kills the command and raises nothing more; only before done. NULL is fine. */
void secret_query_cancel(struct secret_query *query);

#endif
