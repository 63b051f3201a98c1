/* SPDX-License-Identifier: MIT */
#include "providers/ssh/files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/random.h"
#include "base/soon.h"
#include "base/text.h"
#include "providers/ssh/files_impl.h"

enum { DETAIL_SIZE = 80, FIXED_ARGS = 7 };

struct ssh_file_op {
	struct file_op op;
	struct list link; // files.ops
	struct ssh_files *files;
	enum file_script script;
	struct script_run *run; // owned; NULL until it runs
	struct soon refusal;    // raises an error that needs no script
	bool is_cancelled;      // raises nothing any more
	bool has_failed;
	struct error err;

	char *path; // owned
	enum file_links links;
	size_t max_bytes;
	struct shared *content; // a reference; for a write
	struct file_answer answer;

	union {
		file_read_done *read;
		sandbox_done *plain;
		file_stat_done *stat;
		file_resolve_done *resolve;
	} done;
	void *done_data;
};

/* ---- end of an operation ---- */

static void op_free(struct ssh_file_op *op)
{
	soon_stop(&op->refusal);
	script_run_destroy(op->run);
	list_remove(&op->link);
	shared_release(op->content);
	free(op->path);
	free(op);
}

static void report(const struct ssh_file_op *op, struct buf *content, const struct error *err)
{
	switch (op->script) {
	case FILE_SCRIPT_READ:
		op->done.read(op->done_data, err ? NULL : content, err);
		break;
	case FILE_SCRIPT_WRITE:
		op->done.plain(op->done_data, err);
		break;
	case FILE_SCRIPT_STAT:
		op->done.stat(op->done_data, err ? NULL : &op->answer.status, err);
		break;
	case FILE_SCRIPT_RESOLVE:
		op->done.resolve(op->done_data, err ? NULL : op->answer.path, err);
		break;
	}
}

static void start_next(struct ssh_files *files);

/*
 * The handler may close everything. Only this operation survives, because nothing else refers to
 * it.
 */
static void finish(struct ssh_file_op *op, struct buf *content, const struct error *err)
{
	struct ssh_file_op told = *op;
	struct ssh_files *files = op->files;
	files->running -= op->run ? 1 : 0;
	op_free(op);
	start_next(files);
	if (!told.is_cancelled) {
		report(&told, content, err);
	}
}

static void on_end(void *data, struct buf *output, const char *words, const struct error *err)
{
	struct ssh_file_op *op = data;
	struct error failure = {0};
	struct buf content;
	if (err) {
		failure = *err;
		error_prefix(&failure, "%s", op->path);
	}
	bool is_ok = !err && file_answer_read(op->script, op->path, op->max_bytes, output, words,
				     &op->answer, &failure);
	buf_init(&content, SIZE_MAX / 2);
	if (is_ok) {
		buf_move(&content, output);
	}
	finish(op, &content, is_ok ? NULL : &failure);
	buf_finish(&content);
}

static void on_refusal(struct soon *soon)
{
	struct ssh_file_op *op = CONTAINER_OF(soon, struct ssh_file_op, refusal);
	struct error err = op->err;
	finish(op, NULL, &err);
}

/* ---- the script of an operation ---- */

static void put_detail(const struct ssh_file_op *op, char detail[DETAIL_SIZE])
{
	detail[0] = '\0';
	if (op->script == FILE_SCRIPT_READ) {
		snprintf(detail, DETAIL_SIZE, "%zu", op->max_bytes);
	} else if (op->script == FILE_SCRIPT_WRITE) {
		char token[33];
		random_fill_hex(token, sizeof(token) - 1);
		text_whole(detail, DETAIL_SIZE, "%zu %s", shared_span(op->content).len, token);
	}
}

static struct script_run *start_script(struct ssh_file_op *op, struct error *err)
{
	static const struct script_listener listener = {.on_end = on_end};
	struct ssh_files *files = op->files;
	size_t count = sandbox_root_count(files->sandbox);
	const char **argv = mem_alloc_zero((FIXED_ARGS + count + 1) * sizeof(*argv));
	char detail[DETAIL_SIZE];
	put_detail(op, detail);
	const char *const fixed[FIXED_ARGS] = {"sh", "-c", file_script_text(op->script),
		"acp-broker-file", op->links == FILE_LINKS_REFUSED ? "refused" : "followed",
		op->path, detail};
	memcpy(argv, fixed, sizeof(fixed));
	for (size_t i = 0; i < count; i++) {
		argv[FIXED_ARGS + i] = sandbox_root_at(files->sandbox, i)->runtime;
	}
	struct script_order order = {.argv = argv,
		.input = shared_span(op->content),
		.output_max = op->max_bytes + FILE_ANSWER_MAX,
		.silence_ms = SSH_FILES_SILENCE_MS};
	struct script_run *run =
		script_run_start(files->sandbox->loop, files->runner, &order, &listener, op, err);
	free(argv);
	return run;
}

static void refuse(struct ssh_file_op *op, const struct error *err)
{
	op->has_failed = true;
	op->err = *err;
	soon_start(&op->refusal);
}

/* ---- choosing what runs ---- */

static bool must_wait(const struct ssh_file_op *op)
{
	LIST_FOR_EACH(other, &op->files->ops, struct ssh_file_op, link) {
		if (other == op) {
			return false;
		}
		if (op->script == FILE_SCRIPT_WRITE && other->script == FILE_SCRIPT_WRITE &&
			strcmp(other->path, op->path) == 0) {
			return true;
		}
	}
	return false;
}

static void start_next(struct ssh_files *files)
{
	LIST_FOR_EACH(op, &files->ops, struct ssh_file_op, link) {
		if (files->running >= SSH_FILES_AT_ONCE) {
			return;
		}
		if (op->run || op->has_failed || must_wait(op)) {
			continue;
		}
		struct error err;
		op->run = start_script(op, &err);
		if (op->run) {
			files->running++;
		} else {
			error_prefix(&err, "%s", op->path);
			refuse(op, &err);
		}
	}
}

/* ---- paths that are refused ---- */

static bool check_names(const char *path, struct error *err)
{
	for (const char *at = path; *at;) {
		at += strspn(at, "/");
		size_t len = strcspn(at, "/");
		if (len > NAME_MAX) {
			return error_set(err, ERROR_SYSTEM, "%s: File name too long", path);
		}
		at += len;
	}
	return true;
}

static bool check_path(const char *path, struct error *err)
{
	if (path[0] != '/') {
		return error_set_reason(err, ERROR_DENIED, "SECURITY_VIOLATION",
			"%s: refused, it is not absolute", path);
	}
	if (strlen(path) >= FILE_PATH_MAX) {
		return error_set(err, ERROR_LIMIT, "a path of %zu bytes is too long", strlen(path));
	}
	return check_names(path, err);
}

/* ---- the operations ---- */

static struct ssh_file_op *op_create(
	struct ssh_files *files, enum file_script script, const char *path, void *done_data)
{
	struct ssh_file_op *op = mem_alloc_zero(sizeof(*op));
	op->op.sandbox = files->sandbox;
	op->files = files;
	op->script = script;
	op->path = mem_strdup(path);
	op->done_data = done_data;
	soon_init(&op->refusal, op->files->sandbox->loop, on_refusal);
	list_append(&files->ops, &op->link);
	return op;
}

static struct file_op *submit(struct ssh_file_op *op)
{
	struct error err;
	if (check_path(op->path, &err)) {
		start_next(op->files);
	} else {
		refuse(op, &err);
	}
	return &op->op;
}

struct file_op *ssh_files_read(struct ssh_files *files, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	struct ssh_file_op *op = op_create(files, FILE_SCRIPT_READ, path, data);
	op->links = links;
	op->max_bytes = max_bytes < SIZE_MAX / 4 ? max_bytes : SIZE_MAX / 4;
	op->done.read = done;
	return submit(op);
}

struct file_op *ssh_files_write(struct ssh_files *files, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data)
{
	struct ssh_file_op *op = op_create(files, FILE_SCRIPT_WRITE, path, data);
	op->links = links;
	op->content = shared_reference(content);
	op->done.plain = done;
	return submit(op);
}

struct file_op *ssh_files_stat(
	struct ssh_files *files, const char *path, file_stat_done *done, void *data)
{
	struct ssh_file_op *op = op_create(files, FILE_SCRIPT_STAT, path, data);
	op->done.stat = done;
	return submit(op);
}

struct file_op *ssh_files_resolve(
	struct ssh_files *files, const char *path, file_resolve_done *done, void *data)
{
	struct ssh_file_op *op = op_create(files, FILE_SCRIPT_RESOLVE, path, data);
	op->done.resolve = done;
	return submit(op);
}

void ssh_files_cancel(struct file_op *file_op)
{
	struct ssh_file_op *op = CONTAINER_OF(file_op, struct ssh_file_op, op);
	op->is_cancelled = true;
	if (!op->run || op->script != FILE_SCRIPT_WRITE) {
		finish(op, NULL, NULL);
	}
}

void ssh_files_init(struct ssh_files *files, struct sandbox *sandbox, struct sandbox *runner)
{
	*files = (struct ssh_files){.sandbox = sandbox, .runner = runner};
	list_init(&files->ops);
}

void ssh_files_finish(struct ssh_files *files)
{
	LIST_FOR_EACH(op, &files->ops, struct ssh_file_op, link) {
		op_free(op);
	}
	files->running = 0;
}
