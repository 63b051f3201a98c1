/* SPDX-License-Identifier: MIT */
#include "providers/exec/sandbox_impl.h"

void exec_use_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	struct exec_sandbox *self = exec_sandbox_of(sandbox);
	if (self->shown) {
		exec_shown_add_root(self->shown, self->remote, local_root, done, data);
	} else {
		ssh_roots_add(&self->roots, local_root, done, data);
	}
}

struct exec *exec_use_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	struct exec_sandbox *self = exec_sandbox_of(sandbox);
	if (spec->foreground) {
		error_set(err, ERROR_UNAVAILABLE, "%s: a process of %s has no terminal here",
			spec->argv[0], exec_sandbox_name(self));
		return NULL;
	}
	bool has_word = self->instance && self->token;
	struct exec *exec =
		has_word ? last_word_exec(self->instance, self->remote, spec, listener, data, err)
			 : remote_exec(self->remote, spec, listener, data, err);
	if (exec && spec->suspends) {
		remote_exec_join(has_word ? last_word_inner(exec) : exec, &self->suspension);
	}
	return exec;
}

struct file_op *exec_use_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	return remote_read(exec_sandbox_of(sandbox)->remote, path, links, max_bytes, done, data);
}

struct file_op *exec_use_write_file(struct sandbox *sandbox, const char *path,
	enum file_links links, struct shared *content, sandbox_done *done, void *data)
{
	return remote_write(exec_sandbox_of(sandbox)->remote, path, links, content, done, data);
}

struct file_op *exec_use_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data)
{
	return remote_stat(exec_sandbox_of(sandbox)->remote, path, done, data);
}

struct file_op *exec_use_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data)
{
	return remote_resolve(exec_sandbox_of(sandbox)->remote, path, done, data);
}

void exec_use_look(struct sandbox *sandbox)
{
	exec_shown_look(exec_sandbox_of(sandbox)->shown);
}

bool exec_use_is_pinned(const struct sandbox *sandbox, const char *path)
{
	return exec_shown_is_pinned(
		CONTAINER_OF(sandbox, struct exec_sandbox, sandbox)->shown, path);
}

void exec_use_suspend(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	suspension_suspend(&exec_sandbox_of(sandbox)->suspension, done, data);
}

void exec_use_resume(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	suspension_resume(&exec_sandbox_of(sandbox)->suspension, done, data);
}

bool exec_use_forward(struct sandbox *sandbox, const struct forward_port *port,
	const int fds[FORWARD_ADDRESSES], const struct forward_visit *visit, struct error *err)
{
	return remote_forward(exec_sandbox_of(sandbox)->remote, port, fds, visit, err);
}

void exec_use_unforward(struct sandbox *sandbox, uint16_t here, bool resets)
{
	remote_forward_remove(exec_sandbox_of(sandbox)->remote, here, resets);
}

const char *exec_use_by_signals(const struct sandbox *sandbox)
{
	return suspension_by_signals(
		&CONTAINER_OF(sandbox, struct exec_sandbox, sandbox)->suspension);
}
