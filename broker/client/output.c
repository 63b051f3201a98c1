/* SPDX-License-Identifier: MIT */
#include "broker/client/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mask.h"

void output_drop(struct output *output)
{
	ev_io_stop(output->loop, &output->writer);
	ev_io_stop(output->loop, &output->gone);
	buf_finish(&output->queue);
	output->is_broken = true;
}

static void fail(struct output *output, int errnum)
{
	struct error err;
	output_drop(output);
	error_set_errno(&err, errnum, "writing to stdout");
	err.code = errnum == EPIPE || errnum == ECONNRESET ? ERROR_UNAVAILABLE : ERROR_SYSTEM;
	output->listener->on_broken(output->data, &err);
}

static void on_writable(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct output *output = io->data;
	struct span bytes = buf_span(&output->queue);
	ssize_t count = bytes.len > 0 ? write(output->out.fd, bytes.data, bytes.len) : 0;
	if (count < 0) {
		if (!io_is_transient(errno)) {
			fail(output, errno);
		}
		return;
	}
	buf_consume(&output->queue, (size_t)count);
	if (output->queue.len == 0) {
		ev_io_stop(loop, io);
	}
	if (output->was_over && output->queue.len < OUTPUT_MAX / 2) {
		output->was_over = false;
		output->listener->on_drained(output->data);
	}
	if (output->queue.len == 0) {
		output->listener->on_flushed(output->data);
	}
}

/* The write end of a pipe never becomes readable: this is an error or nothing. */
static void on_gone(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct output *output = io->data;
	struct pollfd state = {.fd = output->out.fd};
	ev_io_stop(loop, io);
	if (poll(&state, 1, 0) > 0 && state.revents & POLLERR) {
		fail(output, EPIPE);
	}
}

bool output_init(struct output *output, struct ev_loop *loop, int fd,
	const struct output_listener *listener, void *data, struct error *err)
{
	*output = (struct output){.loop = loop, .listener = listener, .data = data, .last = '\n'};
	output->is_terminal = isatty(fd) == 1;
	if (!fd_inherited_init(&output->out, fd, O_WRONLY, err)) {
		return false;
	}
	buf_init(&output->queue, SIZE_MAX / 2);
	ev_io_init(&output->writer, on_writable, output->out.fd, EV_WRITE);
	output->writer.data = output;
	ev_io_init(&output->gone, on_gone, output->out.fd, EV_READ);
	output->gone.data = output;
	struct stat status;
	if (fstat(output->out.fd, &status) == 0 && S_ISFIFO(status.st_mode)) {
		ev_io_start(loop, &output->gone);
	}
	return true;
}

void output_finish(struct output *output)
{
	ev_io_stop(output->loop, &output->writer);
	ev_io_stop(output->loop, &output->gone);
	buf_finish(&output->queue);
	fd_inherited_finish(&output->out);
}

static void append(struct output *output, struct span text)
{
	buf_add(&output->queue, text); // the buffer has no practical maximum
}

/* Writes at once, so that text printed elsewhere to the same terminal comes after it. */
static void write_now(struct output *output)
{
	struct span bytes = buf_span(&output->queue);
	ssize_t count = write(output->out.fd, bytes.data, bytes.len);
	buf_consume(&output->queue, count > 0 ? (size_t)count : 0);
}

void output_print(struct output *output, struct span text)
{
	char room[MASK_SIZE];
	if (output->is_broken || text.len == 0) {
		return;
	}
	output->last = text.data[text.len - 1];
	if (!output->is_terminal) {
		append(output, text);
		text.len = 0;
	}
	while (text.len > 0) {
		append(output, mask_next(&text, room));
	}
	write_now(output);
	output->was_over = output->was_over || output_is_over(output);
	ev_io_start(output->loop, &output->writer); // also reports a failure, and the end
}

void output_end_line(struct output *output)
{
	if (output->last != '\n') {
		output_print(output, SPAN_LITERAL("\n"));
	}
}

bool output_is_over(const struct output *output)
{
	return output->queue.len > OUTPUT_MAX;
}

bool output_is_idle(const struct output *output)
{
	return output->is_broken || output->queue.len == 0;
}
