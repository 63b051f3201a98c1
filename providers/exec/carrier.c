/* SPDX-License-Identifier: MIT */
#include "providers/exec/carrier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/process.h"
#include "base/words.h"

enum { LINE_MAX_BYTES = 1024, READ_SIZE = 64 * 1024 };

/* How long we wait for the status of a command that has closed its stdout. */
static const double last_words_s = 1.;

struct exec_stream {
	struct carrier_stream stream;
	struct exec_carrier *of;
	struct process *process;
	const struct carrier_listener *listener;
	void *data;
	ev_io in, out, err; // fd is -1 once closed
	ev_timer end;       // waits for the status after the end of the output
	bool has_begun, has_exited;
	struct process_status status;
};

static struct ev_loop *loop_of(const struct exec_stream *self)
{
	return self->of->context->loop;
}

/* ---- the end ---- */

static void stop(struct exec_stream *self)
{
	struct ev_loop *loop = loop_of(self);
	ev_timer_stop(loop, &self->end);
	io_close(loop, &self->in);
	io_close(loop, &self->out);
	io_close(loop, &self->err);
	process_destroy(self->process);
	self->process = NULL;
}

static void tell_closed(struct exec_stream *self, const struct error *err)
{
	self->of->has_ended = true;
	stop(self);
	self->listener->on_closed(self->data, self->has_begun, err);
}

static void read_complaint(struct exec_stream *self)
{
	char bytes[READ_SIZE];
	ssize_t count = 1;
	while (self->err.fd >= 0 && count > 0) {
		count = read(self->err.fd, bytes, sizeof(bytes));
		if (count > 0) {
			io_keep_words(
				self->of->said, EXEC_SAID_MAX, (struct span){bytes, (size_t)count});
		} else if (count == 0 || !io_is_transient(errno)) {
			io_close(loop_of(self), &self->err);
		}
	}
}

/* The listener adds the context to the error. */
static void end(struct exec_stream *self)
{
	struct error err;
	char status[64];
	const struct exec_profile *profile = self->of->profile;
	read_complaint(self);
	const char *said = self->of->said + strspn(self->of->said, " ");
	error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST", "exec (%s) %s%s%s",
		profile->words[EXEC_EXEC][0],
		self->has_exited ? process_status_text(self->status, status, sizeof(status))
				 : "has closed its output",
		*said ? "; it said: " : "", said);
	tell_closed(self, &err);
}

static void on_end_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	end(CONTAINER_OF(timer, struct exec_stream, end));
}

/* ---- the process ---- */

static void on_started(void *data, pid_t pid)
{
	((struct exec_stream *)data)->has_begun = true;
}

static void on_failed(void *data, const struct error *failure)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST", "exec: %s", failure->text);
	tell_closed(data, &err);
}

/* Reads the rest of its output before it reports the end. */
static void on_exited(void *data, struct process_status status)
{
	struct exec_stream *self = data;
	self->has_exited = true;
	self->status = status;
	if (self->out.fd >= 0) {
		ev_feed_event(loop_of(self), &self->out, EV_READ);
	} else {
		end(self);
	}
}

static const struct process_listener process_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
};

/* ---- pipes ---- */

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct exec_stream *self = CONTAINER_OF(io, struct exec_stream, out);
	char bytes[READ_SIZE];
	ssize_t count = read(io->fd, bytes, sizeof(bytes));
	if (count > 0) {
		if (self->has_exited) {
			ev_feed_event(loop, io, EV_READ); // until all is read
		}
		self->listener->on_bytes(self->data, (struct span){bytes, (size_t)count});
	} else if (count < 0 && io_is_transient(errno)) {
		if (self->has_exited) {
			end(self);
		}
	} else {
		io_close(loop, io);
		if (self->has_exited) {
			end(self);
		} else {
			ev_timer_start(loop, &self->end);
		}
	}
}

static void on_complaint(struct ev_loop *loop, ev_io *io, int events)
{
	read_complaint(CONTAINER_OF(io, struct exec_stream, err));
}

static void on_room(struct ev_loop *loop, ev_io *io, int events)
{
	struct exec_stream *self = CONTAINER_OF(io, struct exec_stream, in);
	ev_io_stop(loop, io);
	self->listener->on_writable(self->data);
}

/*
 * If the command no longer reads its stdin, we drop the bytes and report them as written: its end
 * follows soon.
 */
static size_t write_stream(struct carrier_stream *stream, struct span bytes)
{
	struct exec_stream *self = CONTAINER_OF(stream, struct exec_stream, stream);
	size_t taken = 0;
	while (self->in.fd >= 0 && taken < bytes.len) {
		ssize_t count = write(self->in.fd, bytes.data + taken, bytes.len - taken);
		if (count >= 0) {
			taken += (size_t)count;
		} else if (errno == EAGAIN) {
			ev_io_start(loop_of(self), &self->in);
			return taken;
		} else if (errno != EINTR) {
			io_close(loop_of(self), &self->in);
		}
	}
	return bytes.len;
}

/* ---- life ---- */

static void close_stream(struct carrier_stream *stream)
{
	struct exec_stream *self = CONTAINER_OF(stream, struct exec_stream, stream);
	stop(self);
	free(self);
}

static bool open_pipe(ev_io *io, int events, int *out_child_fd, struct error *err)
{
	int fds[2];
	bool is_in = events == EV_WRITE;
	if (!fd_pipe(fds, err)) {
		return false;
	}
	fd_grow_pipe(fds[0]);
	ev_io_set(io, fds[is_in ? 1 : 0], events);
	*out_child_fd = fds[is_in ? 0 : 1];
	return fd_set_nonblock(io->fd, true, err);
}

static bool start(struct exec_stream *self, const char *const *words, struct error *err)
{
	const struct exec_carrier *of = self->of;
	const struct exec_values values = {.instance = of->instance};
	int fds[3] = {-1, -1, -1};
	if (open_pipe(&self->in, EV_WRITE, &fds[0], err) &&
		open_pipe(&self->out, EV_READ, &fds[1], err) &&
		open_pipe(&self->err, EV_READ, &fds[2], err)) {
		char **argv = exec_profile_argv(of->profile, EXEC_EXEC, &values, words);
		struct process_spec spec = {.argv = (const char *const *)argv,
			.env = (const char *const *)of->profile->env,
			.cwd = of->profile->home,
			.in = fds[0],
			.out = fds[1],
			.err = fds[2]};
		self->process =
			process_start(of->context->spawner, &spec, &process_listener, self, err);
		words_free(argv);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(fds); i++) {
		fd_close(&fds[i]);
	}
	return self->process != NULL;
}

static struct carrier_stream *start_stream(struct carrier *carrier, const char *const *argv,
	const struct carrier_listener *listener, void *data, struct error *err)
{
	struct exec_stream *self = mem_alloc_zero(sizeof(*self));
	self->of = CONTAINER_OF(carrier, struct exec_carrier, carrier);
	self->of->has_ended = false;
	self->of->said[0] = '\0';
	self->stream.carrier = carrier;
	self->listener = listener;
	self->data = data;
	ev_io_init(&self->in, on_room, -1, EV_WRITE);
	ev_io_init(&self->out, on_readable, -1, EV_READ);
	ev_io_init(&self->err, on_complaint, -1, EV_READ);
	ev_timer_init(&self->end, on_end_due, last_words_s, 0.);
	if (!start(self, argv, err)) {
		close_stream(&self->stream);
		return NULL;
	}
	ev_io_start(loop_of(self), &self->out);
	ev_io_start(loop_of(self), &self->err);
	return &self->stream;
}

static struct carrier_stream *open_stream(struct carrier *carrier, const char *line,
	const struct carrier_listener *listener, void *data, struct error *err)
{
	const char *const shell[] = {"/bin/sh", "-c", line, NULL};
	return start_stream(carrier, shell, listener, data, err);
}

static const struct carrier_impl impl = {
	.name = "exec",
	.line_max = LINE_MAX_BYTES,
	.open = open_stream,
	.start = start_stream,
	.write = write_stream,
	.close = close_stream,
};

void exec_carrier_init(struct exec_carrier *carrier, const struct provider_context *context,
	const struct exec_profile *profile, const char *instance)
{
	*carrier = (struct exec_carrier){.carrier = {.impl = &impl},
		.context = context,
		.profile = profile,
		.instance = instance};
}
