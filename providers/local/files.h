/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_FILES_H
#define PROVIDERS_LOCAL_FILES_H

#include "base/list.h"
#include "providers/local/confine.h"
#include "providers/provider.h"

/* The file operations of a sandbox whose files are this machine's, on the worker pool. */
struct local_files {
	struct sandbox *sandbox;
	struct pool *pool;
	struct confine *confine; // the roots so far
	struct list ops;         // of struct local_op, in the order of the calls
};

void local_files_init(struct local_files *files, struct sandbox *sandbox, struct pool *pool);
void local_files_finish(struct local_files *files); // cancels what is left

/* Before the first operation: whose permissions hold in the roots. */
void local_files_set_owner(struct local_files *files, const struct owner *owner);

/*
 * Makes a folder a root, under the name it is given by. Not an operation that
 * can be cancelled but by local_files_finish.
 */
void local_files_add_root(
	struct local_files *files, const char *path, sandbox_done *done, void *data);

/*
 * The same of a folder that no link leads to: an agent that may write beside it cannot put one in
 * its place (SECURITY_VIOLATION).
 */
void local_files_add_plain_root(
	struct local_files *files, const char *path, sandbox_done *done, void *data);

/* As the functions of providers/provider.h. */
struct file_op *local_files_read(struct local_files *files, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *local_files_write(struct local_files *files, const char *path,
	enum file_links links, struct span content, sandbox_done *done, void *data);
struct file_op *local_files_stat(
	struct local_files *files, const char *path, file_stat_done *done, void *data);
struct file_op *local_files_resolve(
	struct local_files *files, const char *path, file_resolve_done *done, void *data);
void local_files_cancel(struct file_op *op);

#endif
