/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_RUNNER_FILE_H
#define PROVIDERS_EXEC_RUNNER_FILE_H

#include "providers/provider.h"

/*
 * The runner's program as a file of this machine, for a platform that takes it from there:
 * STATE/FOLDER/acp-runner, 0755. It is written, on the pool, where it is missing or another
 * version's; whoever has the old one open keeps that. Loop thread.
 */
struct exec_runner_file;

/* Its path; to be freed. NULL: there is no folder for it. */
char *exec_runner_file_path(const struct provider_context *context, const char *folder);

/* Raised once, not before exec_runner_file_write returns. */
typedef void exec_runner_file_done(void *data, const struct error *err);

/* EXEC_NO_RUNNER: this build has none. `path` as above; NULL: ERROR_CONFIG. */
struct exec_runner_file *exec_runner_file_write(const struct provider_context *context,
	const char *path, exec_runner_file_done *done, void *data,
	struct error *err) ATTR_NODISCARD;
void exec_runner_file_cancel(struct exec_runner_file *file); // raises nothing more; NULL is fine

/* The build of the program, 40 digits, for its name elsewhere. False: this build has none. */
bool exec_runner_file_build(char out_build[41]) ATTR_NODISCARD;

#endif
