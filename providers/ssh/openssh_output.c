/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "providers/ssh/openssh_channel.h"

enum { READ_MAX = 64 * 1024 };

static struct ev_loop *loop_of(const struct openssh_channel *self)
{
	return self->client->context->loop;
}

/* False if the channel was closed meanwhile. */
static bool give(struct openssh_output *output, struct span bytes, size_t *out_taken)
{
	struct openssh_channel *self = output->channel;
	struct life *life = life_hold(self->life);
	size_t taken = self->listener->on_bytes(self->data, output->stream, bytes);
	if (life_let_go(life)) {
		return false;
	}
	*out_taken = taken;
	if (taken < bytes.len) {
		output->is_held = true;
		ev_io_stop(loop_of(self), &output->io);
	}
	return !self->is_over;
}

static void reach_end(struct openssh_output *output)
{
	ev_io_stop(loop_of(output->channel), &output->io);
	fd_close(&output->fd);
	openssh_channel_ask(output->channel);
}

static void read_output(struct openssh_output *output)
{
	char bytes[READ_MAX];
	ssize_t count = read(output->fd, bytes, sizeof(bytes));
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	if (count <= 0) {
		reach_end(output);
		return;
	}
	size_t taken;
	struct span all = {bytes, (size_t)count};
	if (give(output, all, &taken) && taken < all.len) {
		struct span rest = {all.data + taken, all.len - taken};
		buf_add(&output->kept, rest);
	}
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct openssh_output *output = CONTAINER_OF(io, struct openssh_output, io);
	size_t taken;
	if (output->kept.len == 0) {
		read_output(output);
	} else if (give(output, buf_span(&output->kept), &taken)) {
		buf_consume(&output->kept, taken);
	}
}

void openssh_channel_resume(struct ssh_channel *channel, enum ssh_stream stream)
{
	struct openssh_channel *self = CONTAINER_OF(channel, struct openssh_channel, channel);
	struct openssh_output *output = &self->outputs[stream];
	if (output->is_held && !self->is_over) {
		output->is_held = false;
		ev_io_start(loop_of(self), &output->io);
		if (output->kept.len > 0) {
			ev_feed_event(loop_of(self), &output->io, EV_READ);
		}
	}
}

void openssh_output_init(struct openssh_channel *channel, enum ssh_stream stream, int fd)
{
	struct openssh_output *output = &channel->outputs[stream];
	output->channel = channel;
	output->stream = stream;
	output->fd = fd;
	ev_io_init(&output->io, on_readable, fd, EV_READ);
	buf_init(&output->kept, READ_MAX);
}

void openssh_output_finish(struct openssh_output *output)
{
	ev_io_stop(loop_of(output->channel), &output->io);
	fd_close(&output->fd);
	buf_finish(&output->kept);
}
