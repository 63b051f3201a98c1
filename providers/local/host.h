/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_HOST_H
#define PROVIDERS_LOCAL_HOST_H

#include "base/list.h"
#include "providers/impl.h"
#include "providers/local/files.h"
#include "providers/local/limits.h"
#include "providers/suspension.h"

/*
 * What every sandbox on this machine is made of: processes by pipes, files by
 * the worker pool, a list of roots. Embedded by value as the first member; the
 * functions have the types of struct sandbox_impl and can stand there.
 */
struct host_sandbox {
	struct sandbox sandbox;
	const struct provider_context *context; // borrowed
	struct spawner *spawner;                // the context's, or that of a cell
	struct list execs;                      // of struct local_exec
	struct list root_adds;                  // of struct root_add, under way
	struct local_files files;
	struct suspension suspension;
	struct local_limits limits;
	char **environment; // owned; host_drop_variables; NULL: the context's
};

void host_sandbox_init(struct host_sandbox *host, const struct sandbox_impl *impl,
	const struct provider_context *context);
void host_sandbox_finish(struct host_sandbox *host);

/*
 * The sandbox's environment is the broker's own, less what the key drop-env names and what `is_own`
 * (may be NULL) says of a name. Before it is ready.
 */
void host_drop_variables(struct host_sandbox *host, const struct settings *settings,
	bool (*is_own)(const struct provider_context *context, const struct settings *settings,
		struct span name));

void host_add_root(struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data);

/* The same, of a root that has another name in the sandbox, which leads through no link. */
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
	struct span content, sandbox_done *done, void *data);
struct file_op *host_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data);
struct file_op *host_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);

#endif
