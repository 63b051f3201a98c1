/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FAKE_INTERNAL_H
#define TESTS_FAKE_INTERNAL_H

#include "base/list.h"
#include "providers/local/host.h"
#include "tests/support/fake/fake.h"

struct fake_sandbox {
	struct host_sandbox host;
	struct fake_provider *provider;
	struct list link; // fake_provider.sandboxes
	const struct sandbox_listener *listener;
	void *data;
	char home[FILE_PATH_MAX];
	struct fake_behaviour own; // of the profile's keys
	struct fake_behaviour *behaviour;
	size_t roots_asked;
	struct list execs; // of struct fake_exec
	struct list pumps; // of struct fake_pump
	struct list ops;   // of struct fake_op
	ev_timer loss;     // raises failed
	struct error loss_err;
};

static inline struct fake_sandbox *fake_from_sandbox(struct sandbox *sandbox)
{
	return CONTAINER_OF(sandbox, struct fake_sandbox, host.sandbox);
}

struct ev_loop *fake_loop(struct provider *provider);

/* The inventory of struct provider_impl. */
bool fake_inventory(struct provider *provider, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err);

/* Whether this call is to fail; counts it. */
bool fake_fails(struct fake_sandbox *sandbox, enum fake_operation operation, struct error *err);

/* The exec of struct sandbox_impl. */
struct exec *fake_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err);
void fake_execs_lose(struct fake_sandbox *sandbox, const struct error *err);
void fake_execs_abandon(struct fake_sandbox *sandbox);

/*
 * Copies an output to a pipe from which each read returns at most `chunk` bytes. Takes over `from`.
 * Returns the end to read from, or -1.
 */
int fake_pump_start(struct fake_sandbox *sandbox, int from, size_t chunk, struct error *err);
void fake_pumps_stop(struct fake_sandbox *sandbox);

/* The file operations of struct sandbox_impl. */
struct file_op *fake_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *fake_write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data);
struct file_op *fake_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data);
struct file_op *fake_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);
void fake_op_cancel(struct file_op *op);
void fake_ops_abandon(struct fake_sandbox *sandbox);

#endif
