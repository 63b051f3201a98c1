/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_COPY_IN_H
#define PROVIDERS_EXEC_COPY_IN_H

#include "providers/exec/profile.h"

/*
 * Brings the runner to an instance with the platform's command copy-in: writes the runner to a file
 * on this machine (runner_file.h), and runs copy-in, which copies it to a path there. Loop thread.
 */
struct exec_copy_in;

enum { EXEC_TARGET_SIZE = 80 };

/* `target` is the file there; valid during the call. */
typedef void exec_copy_in_done(void *data, const char *target, const struct error *err);

struct exec_copy_in *exec_copy_in_start(const struct provider_context *context,
	const struct exec_profile *profile, const char *instance, exec_copy_in_done *done,
	void *data, struct error *err) ATTR_NODISCARD;

/* `done` is not called any more. NULL is fine. */
void exec_copy_in_cancel(struct exec_copy_in *copying);

#endif
