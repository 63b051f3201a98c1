/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_PATHS_H
#define PROVIDERS_LOCAL_COPY_PATHS_H

#include "providers/impl.h"

/*
 * The file operations of a copy, for struct sandbox_impl. Below a workspace that is a root they
 * mean the copy: a prompt may name a file as it is called on this machine.
 */
struct file_op *copy_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *copy_write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct span content, sandbox_done *done, void *data);
struct file_op *copy_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data);
struct file_op *copy_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);

#endif
