/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_FILES_H
#define PROVIDERS_SSH_FILES_H

#include "base/list.h"
#include "providers/impl.h"

/*
 * The file operations of a sandbox that can only run commands: each is one POSIX sh script
 * (providers/ssh/remote/file_*.sh), run by sandbox_exec. A few run at once; the others wait in the
 * order of the calls. The roots' runtime names must be free of links there.
 */
enum {
	SSH_FILES_AT_ONCE = 4,
	SSH_FILES_SILENCE_MS = 60000, // limit without a byte from or to a script
};

struct ssh_files {
	struct sandbox *sandbox; // borrowed: the roots are its own
	struct sandbox *runner;  // borrowed: runs the scripts; differs from `sandbox` only in tests
	struct list ops;         // struct ssh_file_op, in the order of the calls
	size_t running;
};

void ssh_files_init(struct ssh_files *files, struct sandbox *sandbox, struct sandbox *runner);
void ssh_files_finish(struct ssh_files *files); // cancels what is left

/* These implement the functions of providers/impl.h. */
struct file_op *ssh_files_read(struct ssh_files *files, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *ssh_files_write(struct ssh_files *files, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data);
struct file_op *ssh_files_stat(
	struct ssh_files *files, const char *path, file_stat_done *done, void *data);
struct file_op *ssh_files_resolve(
	struct ssh_files *files, const char *path, file_resolve_done *done, void *data);

/*
 * Cancels an operation. A running write goes on without events, so that the next write to its path
 * comes after it.
 */
void ssh_files_cancel(struct file_op *op);

#endif
