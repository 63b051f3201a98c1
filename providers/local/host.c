/* SPDX-License-Identifier: MIT */
#include "providers/local/host.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/words.h"
#include "providers/local/exec.h"

/* A folder that is checked before it becomes a root. */
struct root_add {
	struct list link; // host_sandbox.root_adds
	struct host_sandbox *host;
	char *local;   // owned, until it is a root
	char *runtime; // owned, until it is a root
	size_t top;    // as in struct sandbox_root
	sandbox_done *done;
	void *data;
};

static struct host_sandbox *from_sandbox(struct sandbox *sandbox)
{
	return CONTAINER_OF(sandbox, struct host_sandbox, sandbox);
}

void host_sandbox_init(struct host_sandbox *host, const struct sandbox_impl *impl,
	const struct provider_context *context)
{
	sandbox_init(&host->sandbox, impl, context->loop);
	host->sandbox.environment = context->environment;
	host->context = context;
	host->spawner = context->spawner;
	list_init(&host->execs);
	list_init(&host->root_adds);
	suspension_init(&host->suspension, &host->sandbox);
	local_files_init(&host->files, &host->sandbox, context->pool);
}

static void root_add_free(struct root_add *add)
{
	list_remove(&add->link);
	free(add->local);
	free(add->runtime);
	free(add);
}

void host_sandbox_finish(struct host_sandbox *host)
{
	local_files_finish(&host->files);
	words_free(host->environment);
	suspension_finish(&host->suspension);
	local_execs_abandon(&host->execs);
	local_limits_finish(&host->limits); // running processes leave the group when they end
	LIST_FOR_EACH(add, &host->root_adds, struct root_add, link) {
		root_add_free(add);
	}
	for (size_t i = 0; i < host->sandbox.root_count; i++) {
		free((char *)host->sandbox.roots[i].local);
		free((char *)host->sandbox.roots[i].runtime);
	}
	free(host->sandbox.roots);
}

static bool is_named(const struct settings *settings, const char *name, size_t len)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, "drop-env") == 0 && strlen(setting->value) == len &&
			strncmp(setting->value, name, len) == 0) {
			return true;
		}
	}
	return false;
}

void host_drop_variables(struct host_sandbox *host, const struct settings *settings,
	bool (*is_own)(const struct provider_context *context, const struct settings *settings,
		struct span name))
{
	char **kept = mem_alloc_zero(sizeof(*kept));
	for (const char *const *entry = host->context->environment; entry && *entry; entry++) {
		size_t len = strcspn(*entry, "=");
		if (!is_named(settings, *entry, len) &&
			!(is_own && is_own(host->context, settings, (struct span){*entry, len}))) {
			words_append(&kept, *entry);
		}
	}
	words_free(host->environment);
	host->environment = kept;
	host->sandbox.environment = (const char *const *)kept;
}

static bool has_root(const struct sandbox *sandbox, const struct root_add *add)
{
	for (size_t i = 0; i < sandbox->root_count; i++) {
		if (strcmp(sandbox->roots[i].local, add->local) == 0 &&
			strcmp(sandbox->roots[i].runtime, add->runtime) == 0) {
			return true;
		}
	}
	return false;
}

static void on_root_added(void *data, const struct error *err)
{
	struct root_add *add = data;
	struct sandbox *sandbox = &add->host->sandbox;
	sandbox_done *done = add->done;
	void *done_data = add->data;
	if (!err && !has_root(sandbox, add)) {
		size_t count = sandbox->root_count + 1;
		sandbox->roots = mem_realloc(sandbox->roots, count * sizeof(*sandbox->roots));
		sandbox->roots[count - 1] =
			(struct sandbox_root){add->local, add->runtime, add->top};
		sandbox->root_count = count;
		add->local = NULL;
		add->runtime = NULL;
	}
	root_add_free(add);
	done(done_data, err);
}

static struct root_add *begin_root(
	struct host_sandbox *host, const struct sandbox_root *root, sandbox_done *done, void *data)
{
	struct root_add *add = mem_alloc_zero(sizeof(*add));
	add->host = host;
	add->local = mem_strdup(root->local);
	add->runtime = mem_strdup(root->runtime);
	add->top = root->top;
	add->done = done;
	add->data = data;
	list_append(&host->root_adds, &add->link);
	return add;
}

void host_add_mapped_root(
	struct sandbox *sandbox, const struct sandbox_root *root, sandbox_done *done, void *data)
{
	struct host_sandbox *host = from_sandbox(sandbox);
	struct root_add *add = begin_root(host, root, done, data);
	local_files_add_plain_root(&host->files, add->runtime, on_root_added, add);
}

void host_add_root(struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	struct host_sandbox *host = from_sandbox(sandbox);
	struct sandbox_root root = {.local = local_root, .runtime = local_root};
	struct root_add *add = begin_root(host, &root, done, data);
	local_files_add_root(&host->files, add->runtime, on_root_added, add);
}

struct exec *host_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	struct host_sandbox *host = from_sandbox(sandbox);
	const struct local_limits *limits =
		spec->is_limited && host->limits.is_any ? &host->limits : NULL;
	struct exec *exec =
		local_exec_start(host->spawner, &host->execs, spec, limits, listener, data, err);
	if (exec && spec->suspends) {
		local_exec_join(exec, &host->suspension);
	}
	return exec;
}

bool host_usage(const struct sandbox *sandbox, struct group_usage *out)
{
	const struct host_sandbox *host = CONTAINER_OF(sandbox, struct host_sandbox, sandbox);
	if (host->limits.group.is_open) {
		limit_group_usage(host->limits.group.fd, out);
	}
	return host->limits.group.is_open;
}

void host_suspend(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	suspension_suspend(&from_sandbox(sandbox)->suspension, done, data);
}

void host_resume(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	suspension_resume(&from_sandbox(sandbox)->suspension, done, data);
}

const char *host_by_signals(const struct sandbox *sandbox)
{
	const struct host_sandbox *host = CONTAINER_OF(sandbox, struct host_sandbox, sandbox);
	return suspension_by_signals(&host->suspension);
}

struct file_op *host_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	return local_files_read(&from_sandbox(sandbox)->files, path, links, max_bytes, done, data);
}

struct file_op *host_write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data)
{
	return local_files_write(&from_sandbox(sandbox)->files, path, links, content, done, data);
}

struct file_op *host_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data)
{
	return local_files_stat(&from_sandbox(sandbox)->files, path, done, data);
}

struct file_op *host_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data)
{
	return local_files_resolve(&from_sandbox(sandbox)->files, path, done, data);
}
