/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "providers/local/host.h"

static bool path_is_below(const char *path, const char *root)
{
	size_t len = strlen(root);
	return strncmp(path, root, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/*
 * A prompt may name a file as it is called here: below a workspace that is a root the copy is
 * meant. Owned by the caller.
 */
static char *name_in_copy(const struct sandbox *sandbox, const char *path)
{
	const struct sandbox_root *best = NULL;
	for (size_t i = 0; i < sandbox->root_count; i++) {
		const struct sandbox_root *root = &sandbox->roots[i];
		if (path_is_below(path, root->runtime)) {
			return mem_strdup(path);
		}
		bool is_longer = !best || strlen(root->local) > strlen(best->local);
		best = path_is_below(path, root->local) && is_longer ? root : best;
	}
	if (!best) {
		return mem_strdup(path);
	}
	const char *rest = path + strlen(best->local);
	char *name = mem_alloc(strlen(best->runtime) + strlen(rest) + 1);
	memcpy(name, best->runtime, strlen(best->runtime));
	memcpy(name + strlen(best->runtime), rest, strlen(rest) + 1);
	return name;
}

struct file_op *copy_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	char *name = name_in_copy(sandbox, path);
	struct file_op *op = host_read_file(sandbox, name, links, max_bytes, done, data);
	free(name);
	return op;
}

struct file_op *copy_write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct span content, sandbox_done *done, void *data)
{
	char *name = name_in_copy(sandbox, path);
	struct file_op *op = host_write_file(sandbox, name, links, content, done, data);
	free(name);
	return op;
}

struct file_op *copy_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data)
{
	char *name = name_in_copy(sandbox, path);
	struct file_op *op = host_stat_file(sandbox, name, done, data);
	free(name);
	return op;
}

struct file_op *copy_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data)
{
	char *name = name_in_copy(sandbox, path);
	struct file_op *op = host_resolve_path(sandbox, name, done, data);
	free(name);
	return op;
}
