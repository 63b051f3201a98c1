/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_FILES_H
#define PROVIDERS_LOCAL_FILES_H

#include "base/list.h"
#include "base/confine.h"
#include "providers/provider.h"

/* The file operations of a sandbox with files on this machine; the worker pool runs them. */
struct local_files {
	struct sandbox *sandbox;
	struct pool *pool;
	struct confine *confine; // the roots added so far
	struct list ops;         // of struct local_op, in call order
};

void local_files_init(struct local_files *files, struct sandbox *sandbox, struct pool *pool);
void local_files_finish(struct local_files *files); // cancels unfinished operations

/* Sets whose permissions apply in the roots. Call it before the first operation. */
void local_files_set_owner(struct local_files *files, const struct owner *owner);

/* Makes a folder a root under the given name. Only local_files_finish can cancel this. */
void local_files_add_root(
	struct local_files *files, const char *path, sandbox_done *done, void *data);

/*
 * The same, but fails with SECURITY_VIOLATION if a link leads to the folder: an agent that can
 * write beside it may have put a link in its place.
 */
void local_files_add_plain_root(
	struct local_files *files, const char *path, sandbox_done *done, void *data);

/* Like the functions of providers/provider.h. */
struct file_op *local_files_read(struct local_files *files, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *local_files_write(struct local_files *files, const char *path,
	enum file_links links, struct shared *content, sandbox_done *done, void *data);
struct file_op *local_files_stat(
	struct local_files *files, const char *path, file_stat_done *done, void *data);
struct file_op *local_files_resolve(
	struct local_files *files, const char *path, file_resolve_done *done, void *data);
void local_files_cancel(struct file_op *op);

#endif
