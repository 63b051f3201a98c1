/* SPDX-License-Identifier: MIT */
#include "base/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/detached.h"
#include "base/fd.h"

enum { READ_SIZE = 16 * 1024, PIPE_MAX = 1024 * 1024 };

struct stream {
	struct ev_io watcher;
	int fd; // -1 after its end
	struct buf text;
	bool is_cut; // bytes that do not fit are dropped without an error
};

struct capture {
	struct ev_loop *loop;
	struct process *process;   // NULL: detached
	struct detached *detached; // NULL: process
	struct ev_timer deadline;
	long long timeout_ms;
	char *name; // argv[0]
	bool is_secret;
	void (*on_part)(void *data, struct span part);
	struct stream out, err;
	capture_done *done;
	void *data;
};

static void stream_finish(struct capture *self, struct stream *stream)
{
	ev_io_stop(self->loop, &stream->watcher);
	fd_close(&stream->fd);
	(self->is_secret ? buf_wipe : buf_finish)(&stream->text);
}

void capture_cancel(struct capture *capture)
{
	if (!capture) {
		return;
	}
	process_destroy(capture->process);
	detached_destroy(capture->detached);
	ev_timer_stop(capture->loop, &capture->deadline);
	stream_finish(capture, &capture->out);
	stream_finish(capture, &capture->err);
	free(capture->name);
	free(capture);
}

static void fail(struct capture *self, const struct error *err)
{
	capture_done *done = self->done;
	void *data = self->data;
	struct error copy = *err;
	capture_cancel(self);
	done(data, NULL, &copy);
}

/* ---- output ---- */

/* Returns false if there is no more to read, now or ever. */
static bool read_some(struct capture *self, struct stream *stream, bool *out_ok, struct error *err)
{
	char bytes[READ_SIZE];
	ssize_t count = read(stream->fd, bytes, sizeof(bytes));
	*out_ok = true;
	if (count < 0) {
		return errno == EINTR;
	}
	if (count == 0) {
		ev_io_stop(self->loop, &stream->watcher);
		fd_close(&stream->fd);
		return false;
	}
	struct span part = {bytes, (size_t)count};
	if (self->on_part) {
		self->on_part(self->data, part);
		return true;
	}
	size_t room = stream->text.max - stream->text.len;
	if (stream->is_cut && part.len > room) {
		part.len = room;
	}
	*out_ok = buf_append(&stream->text, part, err) ||
	          error_prefix(err, "the output of \"%s\"", self->name);
	if (self->is_secret) {
		explicit_bzero(bytes, sizeof(bytes));
	}
	return *out_ok;
}

/*
 * Reads the rest of the output. It reads at most the capacity of a pipe: bytes beyond that were
 * written after the program's end, by a process that has outlived it.
 */
static bool read_rest(struct capture *self, struct stream *stream, struct error *err)
{
	bool ok = true;
	for (size_t read = 0; read < PIPE_MAX && stream->fd >= 0; read += READ_SIZE) {
		if (!read_some(self, stream, &ok, err)) {
			break;
		}
	}
	return ok;
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct stream *stream = CONTAINER_OF(watcher, struct stream, watcher);
	struct capture *self = watcher->data;
	struct error err;
	bool ok = true;
	read_some(self, stream, &ok, &err);
	if (!ok) {
		fail(self, &err);
	}
}

static void on_deadline(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct capture *self = CONTAINER_OF(timer, struct capture, deadline);
	struct error err;
	error_set(&err, ERROR_TIMEOUT, "\"%s\" has not ended after %lld ms", self->name,
		self->timeout_ms);
	fail(self, &err);
}

/* ---- the process ---- */

static void on_failed(void *data, const struct error *err)
{
	fail(data, err);
}

static void on_exited(void *data, struct process_status status)
{
	struct capture *self = data;
	struct error err;
	if (!read_rest(self, &self->out, &err) || !read_rest(self, &self->err, &err)) {
		fail(self, &err);
		return;
	}
	capture_done *done = self->done;
	void *done_data = self->data;
	void (*finish)(struct buf * buf) = self->is_secret ? buf_wipe : buf_finish;
	struct buf out, errors;
	buf_init(&out, self->out.text.max);
	buf_init(&errors, self->err.text.max);
	buf_move(&out, &self->out.text);
	buf_move(&errors, &self->err.text);
	capture_cancel(self);
	struct capture_result result = {status, buf_span(&out), buf_span(&errors)};
	done(done_data, &result, NULL);
	finish(&out);
	finish(&errors);
}

static const struct process_listener process_listener = {
	.on_failed = on_failed,
	.on_exited = on_exited,
};

/* ---- the start ---- */

static bool stream_open(
	struct capture *self, struct stream *stream, size_t max, int *out_theirs, struct error *err)
{
	int fds[2];
	buf_init(&stream->text, max);
	/* A secret's buffer must never grow: its old memory would keep a copy. */
	if ((self->is_secret && !buf_reserve(&stream->text, max, err)) || !fd_pipe(fds, err)) {
		return false;
	}
	stream->fd = fds[0];
	*out_theirs = fds[1];
	ev_io_init(&stream->watcher, on_readable, stream->fd, EV_READ);
	stream->watcher.data = self;
	return fd_set_nonblock(stream->fd, true, err);
}

/* A file in memory: the program may read it when it likes, or not at all. */
static bool open_input(const char *text, int *out_fd, struct error *err)
{
	int fd = memfd_create("acp-broker-input", MFD_CLOEXEC);
	if (fd < 0) {
		return error_set_errno(err, errno, "making a file in memory");
	}
	if (!fd_write_all(fd, span_of(text), err) || lseek(fd, 0, SEEK_SET) != 0) {
		fd_close(&fd);
		return false;
	}
	*out_fd = fd;
	return true;
}

static bool start(struct capture *self, struct spawner *spawner, const struct capture_spec *spec,
	struct error *err)
{
	int in ATTR_CLEANUP(fd_cleanup) = -1;
	int out ATTR_CLEANUP(fd_cleanup) = -1;
	int errors ATTR_CLEANUP(fd_cleanup) = -1;
	if ((spec->in && !open_input(spec->in, &in, err)) ||
		!stream_open(self, &self->out, spec->out_max, &out, err) ||
		!stream_open(self, &self->err, spec->err_max, &errors, err)) {
		return error_prefix(err, "starting \"%s\"", self->name);
	}
	struct process_spec process = {.argv = spec->argv,
		.env = spec->env,
		.cwd = spec->cwd,
		.in = in,
		.out = out,
		.err = errors};
	if (spec->leaves_daemons) {
		self->detached = detached_start(self->loop, &process, &process_listener, self, err);
		return self->detached != NULL;
	}
	self->process = process_start(spawner, &process, &process_listener, self, err);
	return self->process != NULL;
}

struct capture *capture_start(struct ev_loop *loop, struct spawner *spawner,
	const struct capture_spec *spec, capture_done *done, void *data, struct error *err)
{
	struct capture *self = mem_alloc_zero(sizeof(*self));
	self->loop = loop;
	self->timeout_ms = spec->timeout_ms;
	self->name = mem_strdup(spec->argv[0]);
	self->out.fd = -1;
	self->err.fd = -1;
	self->out.is_cut = spec->out_is_cut;
	self->err.is_cut = true;
	self->is_secret = spec->is_secret;
	self->on_part = spec->on_part;
	self->done = done;
	self->data = data;
	ev_timer_init(&self->deadline, on_deadline, (double)spec->timeout_ms / 1000., 0.);
	if (!start(self, spawner, spec, err)) {
		capture_cancel(self);
		return NULL;
	}
	ev_now_update(loop);
	ev_timer_start(loop, &self->deadline);
	ev_io_start(loop, &self->out.watcher);
	ev_io_start(loop, &self->err.watcher);
	return self;
}
