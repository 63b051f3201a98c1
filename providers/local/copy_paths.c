/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "providers/local/host.h"

static bool path_is_below(const char *path, const char *root)
{
	size_t len = strlen(root);
	return strncmp(path, root, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/*
 * Translates a path below a workspace into the same path in its copy, because a prompt may name a
 * file by its path on this machine. Owned by the caller.
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
	struct shared *content, sandbox_done *done, void *data)
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

/* Sets PWD to the folder in which the process really starts. */
struct exec *copy_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	struct exec_spec there = *spec;
	size_t count = 0;
	while (spec->env[count]) {
		count++;
	}
	const char **env = mem_alloc_zero((count + 2) * sizeof(*env));
	size_t size = strlen(spec->cwd) + sizeof("PWD=");
	char *pwd = mem_alloc(size);
	text_whole(pwd, size, "PWD=%s", spec->cwd);
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (strncmp(spec->env[i], "PWD=", 4) != 0) {
			env[kept++] = spec->env[i];
		}
	}
	env[kept] = pwd;
	there.env = env;
	struct exec *exec = host_exec(sandbox, &there, listener, data, err);
	free(pwd);
	free(env);
	return exec;
}
