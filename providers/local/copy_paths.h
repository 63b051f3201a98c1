/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_PATHS_H
#define PROVIDERS_LOCAL_COPY_PATHS_H

#include "providers/impl.h"

/*
 * The file operations of a copy, for struct sandbox_impl. A path below a workspace means the same
 * file in the workspace's copy, because a prompt may name a file by its path on this machine.
 */
struct file_op *copy_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *copy_write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data);
struct file_op *copy_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data);
struct file_op *copy_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);

/* Starts a process in a copy. PWD names the folder in which the process really starts. */
struct exec *copy_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err);

#endif
