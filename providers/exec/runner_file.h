/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_RUNNER_FILE_H
#define PROVIDERS_EXEC_RUNNER_FILE_H

#include "providers/provider.h"

/*
 * The runner's program as a file on this machine, for a platform that copies the file or mounts its
 * folder: STATE/FOLDER/runner/acp-runner, 0755. The folder has nothing else. The worker pool writes
 * the file if it is missing or of another version. A process that has the old file open keeps it,
 * and an instance that has mounted the folder gets the new file. Loop thread.
 */
struct exec_runner_file;
#define EXEC_RUNNER_NAME "acp-runner"

/* The path of the file; the caller frees it. NULL: there is no state folder. */
char *exec_runner_file_path(const struct provider_context *context, const char *folder);

/* Called once, after exec_runner_file_write has returned. */
typedef void exec_runner_file_done(void *data, const struct error *err);

/*
 * `path` is from exec_runner_file_path; NULL: ERROR_CONFIG. EXEC_NO_RUNNER: this build has no
 * runner.
 */
struct exec_runner_file *exec_runner_file_write(const struct provider_context *context,
	const char *path, exec_runner_file_done *done, void *data,
	struct error *err) ATTR_NODISCARD;
void exec_runner_file_cancel(struct exec_runner_file *file); // no more calls; NULL is fine

/* The runner's build id, 40 hex digits, for its file's name there. False: there is no runner. */
bool exec_runner_file_build(char out_build[41]) ATTR_NODISCARD;

#endif
