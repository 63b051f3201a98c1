/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file_io.h"
#include "base/path.h"
#include "providers/runner/list.h"
#include "providers/runner/runner.h"

/*
 * Requests about files. Worker threads carry them out. The content of a file comes or goes over a
 * stream. At most RUNNER_CONTENTS_MAX contents are in memory at once, in the order of the requests.
 */

enum { LISTING_MAX = 16 << 20 };

struct request;

struct request_kind {
	enum runner_kind kind;
	bool (*run)(struct request *request, struct error *err); // on a thread; NULL: on the loop
	void (*answer)(struct request *request);                 // on success
	enum mux_direction direction;                            // of its stream
	bool has_content;
};

enum request_state {
	REQUEST_WAITING,   // for a place in memory, or an earlier write to the same path
	REQUEST_RECEIVING, // a write's content is coming
	REQUEST_READY,     // a write's content is complete
	REQUEST_BROKEN,    // a write's content is not what was announced
	REQUEST_WORKING,   // a worker carries it out
	REQUEST_SENDING,   // the content is being sent
};

struct request {
	struct list link; // runner.requests
	struct runner *runner;
	const struct request_kind *kind;
	enum request_state state;
	uint64_t id;
	char *path; // owned
	enum file_links links;
	bool asks_mount;
	size_t size;
	struct mux_stream *stream;
	struct buf content;
	bool has_place;
	bool is_cancelled;
	struct worker_job job;

	/* the worker's results */
	struct confine *confine; // a counted reference, while it works
	bool failed;
	struct error err;
	struct stat status;
	bool is_read_only; // its mount
	char found[PATH_MAX];
};

/* ---- kinds ---- */

static bool run_read(struct request *request, struct error *err)
{
	struct buf content;
	if (!file_read(request->confine, request->path, request->links, request->size, &content,
		    err)) {
		return false;
	}
	request->content.max = request->size;
	buf_move(&request->content, &content);
	return true;
}

static bool run_write(struct request *request, struct error *err)
{
	return file_write(
		request->confine, request->path, request->links, buf_span(&request->content), err);
}

static bool run_stat(struct request *request, struct error *err)
{
	return request->asks_mount
	               ? file_stat_mount(request->confine, request->path, &request->status,
				 &request->is_read_only, err)
	               : file_stat(request->confine, request->path, &request->status, err);
}

static bool run_resolve(struct request *request, struct error *err)
{
	return file_resolve(request->confine, request->path, request->found, err);
}

static bool run_list(struct request *request, struct error *err)
{
	request->content.max = LISTING_MAX;
	return list_folder(request->confine, request->path, &request->content, err);
}

static bool run_root_add(struct request *request, struct error *err)
{
	return file_find_root(request->path, request->found, err);
}

static void answer_done(struct request *request)
{
	runner_tell(request->runner,
		&(struct runner_message){
			.kind = RUNNER_DONE, .id = request->id, .size = request->content.len});
}

static void answer_path(struct request *request)
{
	runner_tell(request->runner, &(struct runner_message){.kind = RUNNER_PATH,
					     .id = request->id,
					     .file = {.path = span_of(request->found)}});
}

static void answer_status(struct request *request)
{
	const struct stat *status = &request->status;
	runner_tell(request->runner, &(struct runner_message){.kind = RUNNER_STATUS_OF,
					     .id = request->id,
					     .status_of = {.mode = status->st_mode,
						     .size = (uint64_t)status->st_size,
						     .inode = status->st_ino,
						     .device = status->st_dev,
						     .links = status->st_nlink,
						     .uid = status->st_uid,
						     .gid = status->st_gid,
						     .mtime_s = (uint64_t)status->st_mtim.tv_sec,
						     .mtime_ns = (uint64_t)status->st_mtim.tv_nsec,
						     .is_read_only = request->is_read_only}});
}

static void take_roots(struct runner *runner, struct confine *roots)
{
	confine_release(runner->roots);
	runner->roots = roots;
}

static void answer_root_add(struct request *request)
{
	struct runner *runner = request->runner;
	char name[PATH_MAX];
	path_clean(request->path, name);
	if (!confine_has(runner->roots, name, request->found)) {
		take_roots(runner, confine_extend(runner->roots, name, request->found));
	}
	answer_path(request);
}

static void answer_root_remove(struct request *request)
{
	struct runner *runner = request->runner;
	char name[PATH_MAX];
	path_clean(request->path, name);
	take_roots(runner, confine_without(runner->roots, name));
	answer_done(request);
}

static const struct request_kind kinds[] = {
	{RUNNER_READ, run_read, answer_done, MUX_OUT, true},
	{RUNNER_WRITE, run_write, answer_done, MUX_IN, true},
	{RUNNER_STAT, run_stat, answer_status, MUX_OUT, false},
	{RUNNER_RESOLVE, run_resolve, answer_path, MUX_OUT, false},
	{RUNNER_LIST, run_list, answer_done, MUX_OUT, true},
	{RUNNER_ROOT_ADD, run_root_add, answer_root_add, MUX_OUT, false},
	{RUNNER_ROOT_REMOVE, NULL, answer_root_remove, MUX_OUT, false},
};

/* ---- life ---- */

static void request_free(struct request *request)
{
	struct runner *runner = request->runner;
	runner->content_count -= request->has_place ? 1 : 0;
	runner->request_count--;
	list_remove(&request->link);
	mux_stream_close(request->stream);
	confine_release(request->confine);
	buf_finish(&request->content);
	free(request->path);
	free(request);
}

static void request_fail(struct request *request, const struct error *err)
{
	if (!request->is_cancelled) {
		runner_tell_failure(request->runner, request->id, err);
	}
	request_free(request);
}

/* ---- sending content ---- */

static void send_content(struct request *request)
{
	size_t sent = mux_stream_write(request->stream, buf_span(&request->content));
	buf_consume(&request->content, sent);
	if (request->content.len == 0) {
		mux_stream_finish(request->stream);
		request->stream = NULL;
		request_free(request);
	}
}

/* ---- work ---- */

static void on_run(struct worker_job *job)
{
	struct request *request = CONTAINER_OF(job, struct request, job);
	request->failed = !request->kind->run(request, &request->err);
}

static void on_done(struct worker_job *job)
{
	struct request *request = CONTAINER_OF(job, struct request, job);
	if (request->failed || request->is_cancelled) {
		request_fail(request, &request->err);
		return;
	}
	request->kind->answer(request);
	if (request->kind->has_content && request->kind->direction == MUX_OUT) {
		request->state = REQUEST_SENDING;
		send_content(request);
	} else {
		request_free(request);
	}
}

static void submit(struct request *request)
{
	request->state = REQUEST_WORKING;
	request->confine = confine_reference(request->runner->roots);
	worker_submit(request->runner->worker, &request->job);
}

/* Writes to the same path happen in the order of the requests. */
static bool has_earlier_write(const struct request *request)
{
	LIST_FOR_EACH(other, &request->runner->requests, struct request, link) {
		if (other == request) {
			return false;
		}
		if (other->kind->kind == RUNNER_WRITE && strcmp(other->path, request->path) == 0) {
			return true;
		}
	}
	return false;
}

/* ---- receiving content ---- */

static void receive_content(struct request *request)
{
	struct span bytes = mux_stream_peek(request->stream);
	if (bytes.len > 0 && !buf_append(&request->content, bytes, &request->err)) {
		error_set(&request->err, ERROR_PROTOCOL,
			"writing %s: more than the announced %zu bytes came", request->path,
			request->size);
		request->state = REQUEST_BROKEN;
		return;
	}
	mux_stream_consume(request->stream, bytes.len);
	if (!mux_stream_is_over(request->stream)) {
		return;
	}
	request->state = REQUEST_READY;
	if (request->content.len != request->size) {
		error_set(&request->err, ERROR_PROTOCOL,
			"writing %s: its content is incomplete: %zu of %zu bytes came",
			request->path, request->content.len, request->size);
		request->state = REQUEST_BROKEN;
	}
}

static void on_stream_ready(void *data)
{
	struct request *request = data;
	if (request->state == REQUEST_SENDING) {
		send_content(request);
	} else if (request->state == REQUEST_RECEIVING) {
		receive_content(request);
	}
}

/* The broker no longer needs the content. */
static void on_stream_reset(void *data)
{
	struct request *request = data;
	mux_stream_close(request->stream);
	request->stream = NULL;
	request->is_cancelled = true;
	if (request->state != REQUEST_WORKING) {
		request_free(request);
	}
}

static const struct mux_stream_listener stream_listener = {
	.on_readable = on_stream_ready,
	.on_writable = on_stream_ready,
	.on_reset = on_stream_reset,
};

/* ---- steps ---- */

static void take_place(struct request *request)
{
	request->has_place = true;
	request->runner->content_count++;
	if (request->kind->direction == MUX_IN) {
		request->state = REQUEST_RECEIVING;
		receive_content(request);
	} else {
		submit(request);
	}
}

void requests_step(struct runner *runner)
{
	LIST_FOR_EACH(request, &runner->requests, struct request, link) {
		if (request->state == REQUEST_WAITING &&
			runner->content_count < RUNNER_CONTENTS_MAX) {
			take_place(request);
		}
	}
	LIST_FOR_EACH(request, &runner->requests, struct request, link) {
		if (request->state == REQUEST_BROKEN) {
			request_fail(request, &request->err);
		} else if (request->state == REQUEST_READY && !has_earlier_write(request)) {
			submit(request);
		}
	}
}

static const struct request_kind *kind_find(enum runner_kind kind)
{
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		if (kinds[i].kind == kind) {
			return &kinds[i];
		}
	}
	return NULL;
}

static bool check(const struct runner *runner, const struct runner_file *file, struct error *err)
{
	if (runner->request_count >= RUNNER_REQUESTS_MAX) {
		return error_set(err, ERROR_LIMIT, "more than %d requests about files are waiting",
			RUNNER_REQUESTS_MAX);
	}
	if (file->path.len >= PATH_MAX || memchr(file->path.data, '\0', file->path.len)) {
		return error_set(err, ERROR_LIMIT,
			"a path of %zu bytes is too long or contains a NUL", file->path.len);
	}
	return true;
}

/* Opens the request's stream for content. */
static bool open_stream(struct request *request, const struct runner_file *file, struct error *err)
{
	if (!request->kind->has_content) {
		return true;
	}
	request->stream = mux_open(request->runner->mux, &file->stream, request->kind->direction,
		MUX_BULK, &stream_listener, request, err);
	return request->stream != NULL;
}

void request_start(struct runner *runner, const struct runner_message *message)
{
	struct error err;
	const struct runner_file *file = &message->file;
	if (!check(runner, file, &err)) {
		mux_refuse(runner->mux, &file->stream);
		runner_tell_failure(runner, message->id, &err);
		return;
	}
	struct request *request = mem_alloc_zero(sizeof(*request));
	request->runner = runner;
	request->kind = kind_find(message->kind);
	request->id = message->id;
	request->path = mem_strndup(file->path);
	request->links = file->no_links ? FILE_LINKS_REFUSED : FILE_LINKS_FOLLOWED;
	request->asks_mount = file->asks_mount != 0;
	request->size = (size_t)file->size;
	request->job = (struct worker_job){.run = on_run, .done = on_done};
	buf_init(&request->content, message->kind == RUNNER_WRITE ? request->size : 0);
	list_append(&runner->requests, &request->link);
	runner->request_count++;
	if (!open_stream(request, file, &err)) {
		mux_refuse(runner->mux, &file->stream);
		request_fail(request, &err);
	} else if (!request->kind->run) {
		request->kind->answer(request);
		request_free(request);
	} else if (!request->kind->has_content) {
		submit(request);
	}
}

void request_cancel(struct runner *runner, uint64_t id)
{
	LIST_FOR_EACH(request, &runner->requests, struct request, link) {
		if (request->id != id) {
			continue;
		}
		request->is_cancelled = true;
		if (request->state != REQUEST_WORKING) {
			request_free(request);
		}
		return;
	}
}

void requests_end(struct runner *runner)
{
	worker_abandon(runner->worker);
}
