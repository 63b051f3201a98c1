/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/soon.h"
#include "providers/remote/remote_impl.h"

struct remote_file {
	struct file_op op;
	struct list link;      // remote.files
	struct remote *remote; //
	struct soon refusal;   // raises an error that needs no runner
	struct error err;      // for `refusal`
	enum runner_kind kind;
	uint64_t id; // 0: not sent yet
	bool is_cancelled;
	char *path; // owned
	enum file_links links;
	bool asks_mount;
	size_t max_bytes;
	struct mux_stream *stream; // of the content; NULL: none, or it has ended
	struct buf content;        // of a read: received so far
	struct shared *bytes;      // of a write; a reference
	size_t sent;               // of `bytes`
	bool has_answer;           // of a read: `size` is known
	bool is_at_end;            // the stream has ended
	uint64_t size;
	union {
		file_read_done *read;
		sandbox_done *plain;
		file_stat_done *stat;
		remote_mount_done *mount;
		file_resolve_done *resolve;
	} done;
	void *done_data;
};

/* ---- the end of a request ---- */

static void file_free(struct remote_file *file)
{
	soon_stop(&file->refusal);
	if (file->remote->mux) {
		mux_stream_close(file->stream);
	}
	list_remove(&file->link);
	buf_finish(&file->content);
	shared_release(file->bytes);
	free(file->path);
	free(file);
}

static void start_next(struct remote *remote);

static void report_status(const struct remote_file *told, const struct runner_status_of *of)
{
	struct stat status = {.st_mode = (mode_t)of->mode,
		.st_size = (off_t)of->size,
		.st_ino = of->inode,
		.st_dev = of->device,
		.st_nlink = (nlink_t)of->links,
		.st_uid = (uid_t)of->uid,
		.st_gid = (gid_t)of->gid,
		.st_mtim = {(time_t)of->mtime_s, (long)of->mtime_ns}};
	if (told->asks_mount) {
		told->done.mount(told->done_data, &status, of->is_read_only != 0, NULL);
	} else {
		told->done.stat(told->done_data, &status, NULL);
	}
}

static void report_path(const struct remote_file *told, struct span text)
{
	char *path = mem_strndup(text);
	told->done.resolve(told->done_data, path, NULL);
	free(path);
}

static void report(const struct remote_file *told, struct buf *content,
	const struct runner_message *message, const struct error *err)
{
	if (told->kind == RUNNER_READ) {
		told->done.read(told->done_data, err ? NULL : content, err);
	} else if (told->kind == RUNNER_STAT && !err) {
		report_status(told, &message->status_of);
	} else if (told->kind == RUNNER_STAT && told->asks_mount) {
		told->done.mount(told->done_data, NULL, false, err);
	} else if (told->kind == RUNNER_STAT) {
		told->done.stat(told->done_data, NULL, err);
	} else if (told->kind == RUNNER_RESOLVE && !err) {
		report_path(told, message->file.path);
	} else if (told->kind == RUNNER_RESOLVE) {
		told->done.resolve(told->done_data, NULL, err);
	} else {
		told->done.plain(told->done_data, err);
	}
}

/*
 * Removes the request from the list before it raises the outcome, because its handler may do
 * anything.
 */
static void finish(
	struct remote_file *file, const struct runner_message *message, const struct error *err)
{
	struct remote *remote = file->remote;
	struct remote_file told = *file;
	struct buf content;
	buf_init(&content, SIZE_MAX / 2);
	buf_move(&content, &file->content);
	file_free(file);
	start_next(remote);
	if (!told.is_cancelled) {
		report(&told, &content, message, err);
	}
	buf_finish(&content);
}

static void on_refusal(struct soon *soon)
{
	struct remote_file *file = CONTAINER_OF(soon, struct remote_file, refusal);
	struct remote *remote = file->remote;
	struct error err = file->err;
	remote_hold(remote);
	finish(file, NULL, &err);
	remote_let_go(remote);
}

/* ---- content ---- */

static void fail_cut(struct remote_file *file)
{
	struct error err;
	error_set(&err, ERROR_UNAVAILABLE, "%s: the runner on %s sent incomplete content",
		file->path, file->remote->request.name);
	finish(file, NULL, &err);
}

/* Finishes a read that is complete or cannot get more bytes. */
static void conclude_read(struct remote_file *file)
{
	if (file->has_answer && file->is_at_end) {
		if (file->content.len == file->size) {
			finish(file, NULL, NULL);
		} else {
			fail_cut(file);
		}
	}
}

static void on_readable(void *data)
{
	struct remote_file *file = data;
	struct span bytes = mux_stream_peek(file->stream);
	struct error err;
	if (bytes.len > 0 && !buf_append(&file->content, bytes, &err)) {
		fail_cut(file); // more than was requested
		return;
	}
	mux_stream_consume(file->stream, bytes.len);
	if (mux_stream_is_over(file->stream)) {
		mux_stream_close(file->stream);
		file->stream = NULL;
		file->is_at_end = true;
		conclude_read(file);
	}
}

static void on_writable(void *data)
{
	struct remote_file *file = data;
	struct span bytes = shared_span(file->bytes);
	if (file->sent < bytes.len) {
		struct span rest = {bytes.data + file->sent, bytes.len - file->sent};
		file->sent += mux_stream_write(file->stream, rest);
	}
	if (file->sent == bytes.len) {
		mux_stream_finish(file->stream);
		file->stream = NULL;
	}
}

/* The answer will give the reason. */
static void on_reset(void *data)
{
	struct remote_file *file = data;
	mux_stream_close(file->stream);
	file->stream = NULL;
	if (file->kind == RUNNER_READ) {
		file->is_at_end = true;
		conclude_read(file);
	}
}

static const struct mux_stream_listener stream_listener = {
	.on_readable = on_readable, .on_writable = on_writable, .on_reset = on_reset};

/* ---- answers ---- */

/* The kind of a request's answer. */
static enum runner_kind answer_of(enum runner_kind kind)
{
	return kind == RUNNER_STAT                                 ? RUNNER_STATUS_OF
	       : kind == RUNNER_RESOLVE || kind == RUNNER_ROOT_ADD ? RUNNER_PATH
	                                                           : RUNNER_DONE;
}

static void take(struct remote_file *file, const struct runner_message *message)
{
	struct error err;
	if (message->kind == RUNNER_FAILED) {
		runner_get_failure(&message->failure, &err);
		finish(file, NULL, &err);
	} else if (message->kind != answer_of(file->kind)) {
		error_set(&err, ERROR_PROTOCOL,
			"%s: the runner on %s sent an answer of the wrong kind", file->path,
			file->remote->request.name);
		finish(file, NULL, &err);
	} else if (file->kind == RUNNER_READ) {
		file->has_answer = true;
		file->size = message->size;
		conclude_read(file);
	} else {
		finish(file, message, NULL);
	}
}

bool remote_files_take(struct remote *remote, const struct runner_message *message)
{
	LIST_FOR_EACH(file, &remote->files, struct remote_file, link) {
		if (file->id == message->id && message->id > 0) {
			take(file, message);
			return true;
		}
	}
	return false;
}

/* ---- requests ---- */

static bool open_stream(struct remote_file *file, struct runner_stream *out, struct error *err)
{
	struct mux *mux = file->remote->mux;
	bool is_read = file->kind == RUNNER_READ;
	*out = (struct runner_stream){.stream = mux_next_stream(mux), .window = MUX_WINDOW_FILE};
	file->stream = mux_open(
		mux, out, is_read ? MUX_IN : MUX_OUT, MUX_BULK, &stream_listener, file, err);
	return file->stream != NULL;
}

static bool ask(struct remote_file *file, struct error *err)
{
	bool is_write = file->kind == RUNNER_WRITE;
	struct runner_message message = {.kind = file->kind,
		.id = ++file->remote->last_id,
		.file = {.path = span_of(file->path),
			.no_links = file->links == FILE_LINKS_REFUSED,
			.asks_mount = file->asks_mount,
			.size = is_write ? shared_span(file->bytes).len : file->max_bytes}};
	file->id = message.id;
	if ((is_write || file->kind == RUNNER_READ) &&
		!open_stream(file, &message.file.stream, err)) {
		return false;
	}
	if (!mux_send(file->remote->mux, &message, err)) {
		return false;
	}
	if (is_write) {
		on_writable(file);
	}
	return true;
}

static void refuse(struct remote_file *file, const struct error *err)
{
	file->err = *err;
	soon_start(&file->refusal);
}

/* Writes to the same path happen in call order. */
static bool must_wait(const struct remote_file *file)
{
	LIST_FOR_EACH(other, &file->remote->files, struct remote_file, link) {
		if (other == file) {
			return false;
		}
		if (file->kind == RUNNER_WRITE && other->kind == RUNNER_WRITE &&
			strcmp(other->path, file->path) == 0) {
			return true;
		}
	}
	return false;
}

static void start_next(struct remote *remote)
{
	LIST_FOR_EACH(file, &remote->files, struct remote_file, link) {
		struct error err;
		if (file->id > 0 || soon_is_due(&file->refusal) || must_wait(file)) {
			continue;
		}
		if (remote->is_over) {
			remote_set_lost(remote, file->path, &err);
			refuse(file, &err);
		} else if (!ask(file, &err)) {
			error_prefix(&err, "%s", file->path);
			refuse(file, &err);
		}
	}
}

static struct remote_file *file_create(
	struct remote *remote, enum runner_kind kind, const char *path, void *done_data)
{
	struct remote_file *file = mem_alloc_zero(sizeof(*file));
	file->op.sandbox = remote->sandbox;
	file->remote = remote;
	file->kind = kind;
	file->path = mem_strdup(path);
	file->done_data = done_data;
	buf_init(&file->content, 0);
	soon_init(&file->refusal, remote->request.loop, on_refusal);
	list_append(&remote->files, &file->link);
	return file;
}

static struct file_op *submit(struct remote_file *file)
{
	struct remote *remote = file->remote;
	remote_hold(remote);
	start_next(remote);
	remote_let_go(remote);
	return &file->op;
}

void remote_set_sandbox(struct remote *remote, struct sandbox *sandbox)
{
	remote->sandbox = sandbox;
}

struct file_op *remote_read(struct remote *remote, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	struct remote_file *file = file_create(remote, RUNNER_READ, path, data);
	file->links = links;
	file->max_bytes = max_bytes < SIZE_MAX / 4 ? max_bytes : SIZE_MAX / 4;
	buf_init(&file->content, file->max_bytes);
	file->done.read = done;
	return submit(file);
}

struct file_op *remote_write(struct remote *remote, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data)
{
	struct remote_file *file = file_create(remote, RUNNER_WRITE, path, data);
	file->links = links;
	file->bytes = shared_reference(content);
	file->done.plain = done;
	return submit(file);
}

struct file_op *remote_stat(
	struct remote *remote, const char *path, file_stat_done *done, void *data)
{
	struct remote_file *file = file_create(remote, RUNNER_STAT, path, data);
	file->done.stat = done;
	return submit(file);
}

struct file_op *remote_stat_mount(
	struct remote *remote, const char *path, remote_mount_done *done, void *data)
{
	struct remote_file *file = file_create(remote, RUNNER_STAT, path, data);
	file->asks_mount = true;
	file->done.mount = done;
	return submit(file);
}

struct file_op *remote_resolve(
	struct remote *remote, const char *path, file_resolve_done *done, void *data)
{
	struct remote_file *file = file_create(remote, RUNNER_RESOLVE, path, data);
	file->done.resolve = done;
	return submit(file);
}

struct file_op *remote_add_root(
	struct remote *remote, const char *path, sandbox_done *done, void *data)
{
	struct remote_file *file = file_create(remote, RUNNER_ROOT_ADD, path, data);
	file->done.plain = done;
	return submit(file);
}

/* A write that has begun goes on silently, so that the next write to its path comes after it. */
void remote_file_cancel(struct file_op *op)
{
	struct remote_file *file = CONTAINER_OF(op, struct remote_file, op);
	struct remote *remote = file->remote;
	struct error ignored;
	remote_hold(remote);
	file->is_cancelled = true;
	bool is_asked = file->id > 0 && !remote->is_over;
	if (!is_asked || file->kind != RUNNER_WRITE) {
		if (is_asked) {
			(void)!mux_send(remote->mux,
				&(struct runner_message){.kind = RUNNER_CANCEL, .id = file->id},
				&ignored);
		}
		file_free(file);
		start_next(remote);
	}
	remote_let_go(remote);
}

/* ---- all of them ---- */

/* Finds a request that is unfinished; those whose error is raised later do not count. */
static struct remote_file *find_waiting(struct remote *remote)
{
	LIST_FOR_EACH(file, &remote->files, struct remote_file, link) {
		if (!soon_is_due(&file->refusal)) {
			return file;
		}
	}
	return NULL;
}

void remote_files_lose(struct remote *remote, const struct error *err)
{
	struct remote_file *file;
	while ((file = find_waiting(remote))) {
		struct error failure = *err;
		error_prefix(&failure, "%s", file->path);
		finish(file, NULL, &failure);
	}
}

void remote_files_abandon(struct remote *remote)
{
	LIST_FOR_EACH(file, &remote->files, struct remote_file, link) {
		file_free(file);
	}
}
