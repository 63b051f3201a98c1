/* SPDX-License-Identifier: MIT */
#include "tests/conformance/scripted.h"

#include <stdlib.h>

#include "base/buf.h"
#include "providers/impl.h"
#include "providers/local/local.h"
#include "providers/ssh/files.h"

struct scripted_provider {
	struct provider provider;
	const struct provider_context *context;
	struct provider *local; // owned
};

struct scripted_sandbox {
	struct sandbox sandbox;
	struct sandbox *inner; // owned
	struct ssh_files files;
	const struct sandbox_listener *listener;
	void *data;
	sandbox_done *root_done;
	void *root_data;
};

static struct scripted_sandbox *from_sandbox(struct sandbox *sandbox)
{
	return CONTAINER_OF(sandbox, struct scripted_sandbox, sandbox);
}

static void on_root_added(void *data, const struct error *err)
{
	struct scripted_sandbox *self = data;
	self->sandbox.roots = self->inner->roots;
	self->sandbox.root_count = self->inner->root_count;
	self->root_done(self->root_data, err);
}

/* The cases add one root at a time. */
static void add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	struct scripted_sandbox *self = from_sandbox(sandbox);
	self->root_done = done;
	self->root_data = data;
	sandbox_add_root(self->inner, local_root, on_root_added, self);
}

static struct exec *start_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	return sandbox_exec(from_sandbox(sandbox)->inner, spec, listener, data, err);
}

static struct file_op *read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	return ssh_files_read(&from_sandbox(sandbox)->files, path, links, max_bytes, done, data);
}

static struct file_op *write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data)
{
	return ssh_files_write(&from_sandbox(sandbox)->files, path, links, content, done, data);
}

static struct file_op *stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data)
{
	return ssh_files_stat(&from_sandbox(sandbox)->files, path, done, data);
}

static struct file_op *resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data)
{
	return ssh_files_resolve(&from_sandbox(sandbox)->files, path, done, data);
}

static void destroy(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	sandbox_destroy(from_sandbox(sandbox)->inner, NULL, true, done, data);
}

static void close_sandbox(struct sandbox *sandbox)
{
	struct scripted_sandbox *self = from_sandbox(sandbox);
	ssh_files_finish(&self->files);
	sandbox_close(self->inner);
	free(self);
}

static const struct sandbox_impl sandbox_impl = {
	.add_root = add_root,
	.exec = start_exec,
	.read_file = read_file,
	.write_file = write_file,
	.stat_file = stat_file,
	.resolve_path = resolve_path,
	.file_op_cancel = ssh_files_cancel,
	.close = close_sandbox,
	.destroy = destroy,
};

static void on_ready(void *data)
{
	struct scripted_sandbox *self = data;
	self->sandbox.was_ready = true;
	self->sandbox.capabilities = self->inner->capabilities;
	self->sandbox.capabilities.can_suspend = false; // only files are tested here
	self->sandbox.home = self->inner->home;
	self->sandbox.environment = self->inner->environment;
	self->listener->on_ready(self->data);
}

static void on_failed(void *data, const struct error *err)
{
	struct scripted_sandbox *self = data;
	self->listener->on_failed(self->data, err);
}

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	static const struct sandbox_listener inner = {.on_ready = on_ready, .on_failed = on_failed};
	struct scripted_provider *scripted =
		CONTAINER_OF(provider, struct scripted_provider, provider);
	struct scripted_sandbox *self = mem_alloc_zero(sizeof(*self));
	sandbox_init(&self->sandbox, &sandbox_impl, scripted->context->loop);
	self->listener = listener;
	self->data = data;
	self->inner = sandbox_prepare(scripted->local, request, &inner, self, err);
	if (!self->inner) {
		free(self);
		return NULL;
	}
	ssh_files_init(&self->files, &self->sandbox, self->inner);
	return &self->sandbox;
}

static void provider_free(struct provider *provider)
{
	struct scripted_provider *scripted =
		CONTAINER_OF(provider, struct scripted_provider, provider);
	provider_destroy(scripted->local);
	free(scripted);
}

static const struct provider_impl provider_impl = {
	.name = "ssh", .destroy = provider_free, .prepare = prepare};

struct provider *scripted_provider_create(const struct provider_context *context)
{
	struct scripted_provider *scripted = mem_alloc_zero(sizeof(*scripted));
	scripted->provider.impl = &provider_impl;
	scripted->context = context;
	scripted->local = local_provider_create(context);
	return &scripted->provider;
}
