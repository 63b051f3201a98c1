/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/buf.h"
#include "tests/support/fake/internal.h"

/* A file operation that begins late, or fails instead. */
struct fake_op {
	struct file_op op;
	struct list link; // fake_sandbox.ops
	struct fake_sandbox *sandbox;
	enum fake_operation operation;
	ev_timer timer;
	struct file_op *inner; // NULL before it began
	char *path;            // owned
	enum file_links links; // of a read or a write
	size_t max_bytes;
	struct shared *content; // a reference; of a write
	bool is_due;
	bool has_begun;
	bool fails;
	struct error err;
	union {
		file_read_done *read;
		sandbox_done *plain;
		file_stat_done *stat;
		file_resolve_done *resolve;
	} done;
	void *data;
};

static void op_free(struct fake_op *op)
{
	ev_timer_stop(op->sandbox->host.sandbox.loop, &op->timer);
	if (op->inner) {
		local_files_cancel(op->inner);
	}
	list_remove(&op->link);
	free(op->path);
	shared_release(op->content);
	free(op);
}

/*
 * Takes the operation apart before its handler is called, because the handler may close everything.
 */
static struct fake_op op_take(struct fake_op *op)
{
	struct fake_op taken = *op;
	op->inner = NULL;
	op_free(op);
	return taken;
}

static void on_read(void *data, struct buf *content, const struct error *err)
{
	struct fake_op op = op_take(data);
	op.done.read(op.data, content, err);
}

static void on_plain(void *data, const struct error *err)
{
	struct fake_op op = op_take(data);
	op.done.plain(op.data, err);
}

static void on_stat(void *data, const struct stat *status, const struct error *err)
{
	struct fake_op op = op_take(data);
	op.done.stat(op.data, status, err);
}

static void on_resolve(void *data, const char *path, const struct error *err)
{
	struct fake_op op = op_take(data);
	op.done.resolve(op.data, path, err);
}

static void fail(struct fake_op *failing)
{
	struct fake_op op = op_take(failing);
	if (op.operation == FAKE_READ) {
		op.done.read(op.data, NULL, &op.err);
	} else if (op.operation == FAKE_STAT) {
		op.done.stat(op.data, NULL, &op.err);
	} else if (op.operation == FAKE_RESOLVE) {
		op.done.resolve(op.data, NULL, &op.err);
	} else {
		op.done.plain(op.data, &op.err);
	}
}

static void begin(struct fake_op *op)
{
	struct local_files *files = &op->sandbox->host.files;
	op->has_begun = true;
	if (op->fails) {
		ev_timer_stop(op->sandbox->host.sandbox.loop, &op->timer);
		ev_timer_set(&op->timer, 0., 0.);
		ev_timer_start(op->sandbox->host.sandbox.loop, &op->timer);
	} else if (op->operation == FAKE_READ) {
		op->inner =
			local_files_read(files, op->path, op->links, op->max_bytes, on_read, op);
	} else if (op->operation == FAKE_STAT) {
		op->inner = local_files_stat(files, op->path, on_stat, op);
	} else if (op->operation == FAKE_RESOLVE) {
		op->inner = local_files_resolve(files, op->path, on_resolve, op);
	} else {
		op->inner =
			local_files_write(files, op->path, op->links, op->content, on_plain, op);
	}
}

/*
 * Timers that are due at the same time have no order; operations begin in the order of the calls.
 */
static void begin_due(struct fake_sandbox *sandbox)
{
	LIST_FOR_EACH(op, &sandbox->ops, struct fake_op, link) {
		if (!op->has_begun && !op->is_due) {
			return;
		}
		if (!op->has_begun) {
			begin(op);
		}
	}
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct fake_op *op = CONTAINER_OF(timer, struct fake_op, timer);
	if (op->has_begun) {
		fail(op);
		return;
	}
	op->is_due = true;
	begin_due(op->sandbox);
}

static struct fake_op *op_create(
	struct sandbox *sandbox, enum fake_operation operation, const char *path, void *data)
{
	struct fake_op *op = mem_alloc_zero(sizeof(*op));
	op->op.sandbox = sandbox;
	op->sandbox = fake_from_sandbox(sandbox);
	op->operation = operation;
	op->path = mem_strdup(path);
	op->data = data;
	op->fails = fake_fails(op->sandbox, operation, &op->err);
	list_append(&op->sandbox->ops, &op->link);
	ev_timer_init(&op->timer, on_timer, op->sandbox->behaviour->delay_ms / 1000., 0.);
	ev_timer_start(sandbox->loop, &op->timer);
	return op;
}

struct file_op *fake_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	struct fake_op *op = op_create(sandbox, FAKE_READ, path, data);
	op->links = links;
	op->max_bytes = max_bytes;
	op->done.read = done;
	return &op->op;
}

struct file_op *fake_write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data)
{
	struct fake_op *op = op_create(sandbox, FAKE_WRITE, path, data);
	op->links = links;
	op->content = shared_reference(content);
	op->done.plain = done;
	return &op->op;
}

struct file_op *fake_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data)
{
	struct fake_op *op = op_create(sandbox, FAKE_STAT, path, data);
	op->done.stat = done;
	return &op->op;
}

struct file_op *fake_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data)
{
	struct fake_op *op = op_create(sandbox, FAKE_RESOLVE, path, data);
	op->done.resolve = done;
	return &op->op;
}

void fake_op_cancel(struct file_op *file_op)
{
	struct fake_op *op = CONTAINER_OF(file_op, struct fake_op, op);
	struct fake_sandbox *sandbox = op->sandbox;
	op_free(op);
	begin_due(sandbox);
}

void fake_ops_abandon(struct fake_sandbox *sandbox)
{
	LIST_FOR_EACH(op, &sandbox->ops, struct fake_op, link) {
		op_free(op);
	}
}
