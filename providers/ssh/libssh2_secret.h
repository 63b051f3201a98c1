/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_SECRET_H
#define PROVIDERS_SSH_LIBSSH2_SECRET_H

#include "base/error.h"
#include "providers/provider.h"

/*
 * A secret that a configured command prints: the first line of its output. Loop
 * thread. The caller bounds the wait, by secret_query_cancel.
 */
enum { SECRET_MAX = 4096 };

struct secret_query;

/* `secret` is the callee's to pass to mem_wipe_free; NULL with err. Raised once. */
typedef void secret_done(void *data, char *secret, const struct error *err);

/* `what` is for errors: "passphrase-command". The command is a shell line. */
struct secret_query *secret_query_start(const struct provider_context *context, const char *what,
	const char *command, secret_done *done, void *data, struct error *err) ATTR_NODISCARD;
void secret_query_cancel(struct secret_query *query); // before done; NULL is fine

/* "/bin/sh -c LINE" as a process with this program's environment and directory. */
struct process *shell_start(const struct provider_context *context, const char *line, int fds[3],
	const struct process_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

#endif
