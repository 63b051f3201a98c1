/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_HOST_H
#define PROVIDERS_LOCAL_HOST_H

#include "base/list.h"
#include "providers/impl.h"
#include "providers/local/files.h"
#include "providers/local/limits.h"
#include "providers/suspension.h"

/*
 * The common parts of every sandbox on this machine: processes connected by pipes, files by the
 * worker pool, a list of roots. A sandbox embeds it by value as its first member. The functions
 * have the types of struct sandbox_impl, so that they can be used there.
 */
struct host_sandbox {
	struct sandbox sandbox;
	const struct provider_context *context; // borrowed
	struct spawner *spawner;                // the context's, or a cell's
	struct list execs;                      // of struct local_exec
	struct list root_adds;                  // of struct root_add, unfinished
	struct local_files files;
	struct suspension suspension;
	struct local_limits limits;
	char **environment; // owned, from host_drop_variables; NULL: the context's
};

void host_sandbox_init(struct host_sandbox *host, const struct sandbox_impl *impl,
	const struct provider_context *context);
void host_sandbox_finish(struct host_sandbox *host);

/*
 * Sets the sandbox's environment to the broker's own, without the variables that the key drop-env
 * names and those for which `is_own` returns true (it may be NULL). Call it before the sandbox is
 * ready.
 */
void host_drop_variables(struct host_sandbox *host, const struct settings *settings,
	bool (*is_own)(const struct provider_context *context, const struct settings *settings,
		struct span name));

void host_add_root(struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data);

/* Like host_add_root, for a root that has another name in the sandbox; no link may lead to it. */
void host_add_mapped_root(
	struct sandbox *sandbox, const struct sandbox_root *root, sandbox_done *done, void *data);

struct exec *host_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err);
bool host_usage(const struct sandbox *sandbox, struct group_usage *out);
void host_suspend(struct sandbox *sandbox, sandbox_done *done, void *data);
void host_resume(struct sandbox *sandbox, sandbox_done *done, void *data);
const char *host_by_signals(const struct sandbox *sandbox);
struct file_op *host_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *host_write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data);
struct file_op *host_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data);
struct file_op *host_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);

#endif
