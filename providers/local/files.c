/* SPDX-License-Identifier: MIT */
#include "providers/local/files.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/soon.h"
#include "providers/impl.h"
#include "base/file_io.h"

struct local_op;

/* How the kinds of operations differ. */
struct op_kind {
	bool (*run)(struct local_op *op, struct error *err); // worker thread
	void (*report)(struct local_op *op, const struct error *err);
	bool is_write;
	bool is_root;
};

struct local_op {
	struct file_op op;
	struct list link; // files.ops
	struct local_files *files;
	const struct op_kind *kind;
	struct pool_job job;
	struct soon known; // raises results that need no worker
	bool is_waiting;   // for an earlier write to the same path
	bool is_cancelled; // raises nothing any more

	/* Only the worker uses these while it runs: */
	struct confine *confine; // a counted reference
	char *path;              // owned
	enum file_links links;   // for a read or a write
	size_t max_bytes;
	struct shared *content; // a reference; for a write
	bool failed;
	struct error err;
	struct buf data;
	struct stat status;
	char resolved[PATH_MAX];
	dev_t disk; // for a root

	union {
		file_read_done *read;
		sandbox_done *plain;
		file_stat_done *stat;
		file_resolve_done *resolve;
	} done;
	void *done_data;
};

/* ---- kinds ---- */

static bool run_read(struct local_op *op, struct error *err)
{
	return file_read(op->confine, op->path, op->links, op->max_bytes, &op->data, err);
}

static void report_read(struct local_op *op, const struct error *err)
{
	op->done.read(op->done_data, err ? NULL : &op->data, err);
}

static bool run_write(struct local_op *op, struct error *err)
{
	return file_write(op->confine, op->path, op->links, shared_span(op->content), err);
}

static void report_plain(struct local_op *op, const struct error *err)
{
	op->done.plain(op->done_data, err);
}

static bool run_stat(struct local_op *op, struct error *err)
{
	return file_stat(op->confine, op->path, &op->status, err);
}

static void report_stat(struct local_op *op, const struct error *err)
{
	op->done.stat(op->done_data, err ? NULL : &op->status, err);
}

static bool run_resolve(struct local_op *op, struct error *err)
{
	return file_resolve(op->confine, op->path, op->resolved, err);
}

static void report_resolve(struct local_op *op, const struct error *err)
{
	op->done.resolve(op->done_data, err ? NULL : op->resolved, err);
}

static bool run_root(struct local_op *op, struct error *err)
{
	if (!file_find_root(op->path, op->resolved, err)) {
		return false;
	}
	op->disk = file_disk_of(op->resolved);
	return true;
}

static bool run_plain_root(struct local_op *op, struct error *err)
{
	return run_root(op, err) &&
	       (strcmp(op->resolved, op->path) == 0 ||
		       confine_refuse(err, op->path, "a link has taken its place"));
}

static const struct op_kind kind_read = {.run = run_read, .report = report_read};
static const struct op_kind kind_write = {
	.run = run_write, .report = report_plain, .is_write = true};
static const struct op_kind kind_stat = {.run = run_stat, .report = report_stat};
static const struct op_kind kind_resolve = {.run = run_resolve, .report = report_resolve};

/* ---- an operation's life ---- */

static void op_drop(struct pool_job *job)
{
	struct local_op *op = CONTAINER_OF(job, struct local_op, job);
	list_remove(&op->link);
	confine_release(op->confine);
	buf_finish(&op->data);
	shared_release(op->content);
	free(op->path);
	free(op);
}

static void submit(struct local_op *op);

/* Starts the write that waited for this one. */
static void release_next(const struct local_op *op)
{
	if (!op->kind->is_write || op->is_waiting) {
		return;
	}
	LIST_FOR_EACH(next, &op->files->ops, struct local_op, link) {
		if (next->is_waiting && strcmp(next->path, op->path) == 0) {
			next->is_waiting = false;
			submit(next);
			return;
		}
	}
}

/*
 * The handler may close everything. Only this operation survives, because nothing else refers to
 * it.
 */
static void finish(struct local_op *op)
{
	list_remove(&op->link);
	release_next(op);
	if (!op->is_cancelled) {
		op->kind->report(op, op->failed ? &op->err : NULL);
	}
	op_drop(&op->job);
}

/*
 * The broker itself adds a root; every other operation runs with the permissions of the user who
 * works in the root.
 */
static void on_run(struct pool_job *job)
{
	struct local_op *op = CONTAINER_OF(job, struct local_op, job);
	const struct owner *owner = &op->confine->owner;
	if (op->kind->is_root) {
		op->failed = !op->kind->run(op, &op->err);
		return;
	}
	op->failed = !owner_enter(owner, &op->err) || !op->kind->run(op, &op->err);
	owner_leave(owner);
}

static void on_done(struct pool_job *job)
{
	finish(CONTAINER_OF(job, struct local_op, job));
}

static void on_known(struct soon *soon)
{
	finish(CONTAINER_OF(soon, struct local_op, known));
}

static void submit(struct local_op *op)
{
	op->failed = true; // stays true if the pool ends before it runs the job
	error_set(&op->err, ERROR_UNAVAILABLE, "%s: the broker is ending", op->path);
	struct error err;
	if (!pool_submit(op->files->pool, &op->job, &err)) {
		op->err = err;
		soon_start(&op->known);
	}
}

static bool has_earlier_write(const struct local_op *op)
{
	LIST_FOR_EACH(other, &op->files->ops, struct local_op, link) {
		if (other != op && other->kind->is_write && strcmp(other->path, op->path) == 0) {
			return true;
		}
	}
	return false;
}

static struct local_op *op_create(
	struct local_files *files, const struct op_kind *kind, const char *path, void *done_data)
{
	struct local_op *op = mem_alloc_zero(sizeof(*op));
	op->op.sandbox = files->sandbox;
	op->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = op_drop};
	op->files = files;
	op->kind = kind;
	op->confine = confine_reference(files->confine);
	op->path = mem_strdup(path);
	op->done_data = done_data;
	buf_init(&op->data, 0);
	soon_init(&op->known, op->op.sandbox->loop, on_known);
	list_append(&files->ops, &op->link);
	return op;
}

/* A write that a worker has begun goes on; the next write to its path waits for it. */
void local_files_cancel(struct file_op *file_op)
{
	struct local_op *op = CONTAINER_OF(file_op, struct local_op, op);
	op->is_cancelled = true;
	soon_stop(&op->known);
	if (pool_cancel(&op->job)) {
		finish(op);
	}
}

void local_files_init(struct local_files *files, struct sandbox *sandbox, struct pool *pool)
{
	*files =
		(struct local_files){.sandbox = sandbox, .pool = pool, .confine = confine_create()};
	list_init(&files->ops);
}

void local_files_set_owner(struct local_files *files, const struct owner *owner)
{
	files->confine->owner = *owner;
}

void local_files_finish(struct local_files *files)
{
	LIST_FOR_EACH(op, &files->ops, struct local_op, link) {
		soon_stop(&op->known);
		list_remove(&op->link);
		pool_leave(&op->job);
	}
	confine_release(files->confine);
	files->confine = NULL;
}

/* ---- the operations ---- */

struct file_op *local_files_read(struct local_files *files, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	struct local_op *op = op_create(files, &kind_read, path, data);
	op->links = links;
	op->max_bytes = max_bytes;
	op->done.read = done;
	if (file_read_cached(op->confine, path, links, max_bytes, &op->data)) {
		soon_start(&op->known);
	} else {
		submit(op);
	}
	return &op->op;
}

struct file_op *local_files_write(struct local_files *files, const char *path,
	enum file_links links, struct shared *content, sandbox_done *done, void *data)
{
	struct local_op *op = op_create(files, &kind_write, path, data);
	op->links = links;
	op->content = shared_reference(content);
	op->done.plain = done;
	op->is_waiting = has_earlier_write(op);
	if (!op->is_waiting) {
		submit(op);
	}
	return &op->op;
}

struct file_op *local_files_stat(
	struct local_files *files, const char *path, file_stat_done *done, void *data)
{
	struct local_op *op = op_create(files, &kind_stat, path, data);
	op->done.stat = done;
	submit(op);
	return &op->op;
}

struct file_op *local_files_resolve(
	struct local_files *files, const char *path, file_resolve_done *done, void *data)
{
	struct local_op *op = op_create(files, &kind_resolve, path, data);
	op->done.resolve = done;
	submit(op);
	return &op->op;
}

/* ---- roots ---- */

static void report_root(struct local_op *op, const struct error *err)
{
	char name[PATH_MAX];
	path_clean(op->path, name);
	if (!err && !confine_has(op->files->confine, name, op->resolved)) {
		struct confine *before = op->files->confine;
		op->files->confine = confine_extend(before, name, op->resolved);
		confine_set_disk(op->files->confine, op->disk);
		confine_release(before);
	}
	op->done.plain(op->done_data, err);
}

static const struct op_kind kind_root = {.run = run_root, .report = report_root, .is_root = true};
static const struct op_kind kind_plain_root = {
	.run = run_plain_root, .report = report_root, .is_root = true};

void local_files_add_root(
	struct local_files *files, const char *path, sandbox_done *done, void *data)
{
	struct local_op *op = op_create(files, &kind_root, path, data);
	op->done.plain = done;
	submit(op);
}

void local_files_add_plain_root(
	struct local_files *files, const char *path, sandbox_done *done, void *data)
{
	struct local_op *op = op_create(files, &kind_plain_root, path, data);
	op->done.plain = done;
	submit(op);
}
