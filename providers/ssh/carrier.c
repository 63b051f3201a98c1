/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/ssh/carrier.h"

/* Every server accepts this much, and we need less. */
enum { LINE_MAX_BYTES = 1024 };

struct carried_channel {
	struct carrier_stream stream;
	struct ssh_channel *channel; // NULL once the channel is gone
	const struct carrier_listener *listener;
	void *data;
	bool has_begun;
};

static void on_open(void *data)
{
	struct carried_channel *self = data;
	self->has_begun = true;
}

static void end(struct carried_channel *self, const struct error *err)
{
	struct error failure = *err; // a copy, because *err may belong to the channel
	ssh_channel_close(self->channel);
	self->channel = NULL;
	self->listener->on_closed(self->data, self->has_begun, &failure);
}

static void on_refused(void *data, const struct error *err)
{
	end(data, err);
}

static size_t on_bytes(void *data, enum ssh_stream stream, struct span bytes)
{
	struct carried_channel *self = data;
	size_t len = bytes.len;
	if (stream == SSH_STREAM_OUT) {
		self->listener->on_bytes(self->data, bytes);
	}
	return len;
}

static void on_eof(void *data, enum ssh_stream stream)
{
}

static void on_writable(void *data)
{
	struct carried_channel *self = data;
	self->listener->on_writable(self->data);
}

static void on_closed(void *data, const struct ssh_channel_end *how)
{
	struct carried_channel *self = data;
	struct error err;
	error_set_reason(
		&err, ERROR_UNAVAILABLE, "LINK_LOST", "the broker's program on the host has ended");
	end(self, &err);
}

/* The client's other users are notified as well, and report the loss. */
static void on_lost(void *data, const struct error *err)
{
	struct carried_channel *self = data;
	ssh_channel_close(self->channel);
	self->channel = NULL;
}

static const struct ssh_channel_listener channel_listener = {
	.on_open = on_open,
	.on_refused = on_refused,
	.on_bytes = on_bytes,
	.on_eof = on_eof,
	.on_writable = on_writable,
	.on_closed = on_closed,
	.on_lost = on_lost,
};

static struct carrier_stream *open_stream(struct carrier *carrier, const char *line,
	const struct carrier_listener *listener, void *data, struct error *err)
{
	struct ssh_client *client = CONTAINER_OF(carrier, struct ssh_carrier, carrier)->client;
	struct carried_channel *self = mem_alloc_zero(sizeof(*self));
	self->stream.carrier = carrier;
	self->listener = listener;
	self->data = data;
	self->channel = ssh_channel_open(client, line, &channel_listener, self, err);
	if (!self->channel) {
		free(self);
		return NULL;
	}
	return &self->stream;
}

static size_t write_stream(struct carrier_stream *stream, struct span bytes)
{
	struct carried_channel *self = CONTAINER_OF(stream, struct carried_channel, stream);
	return self->channel ? ssh_channel_write(self->channel, bytes) : 0;
}

static void close_stream(struct carrier_stream *stream)
{
	struct carried_channel *self = CONTAINER_OF(stream, struct carried_channel, stream);
	if (self->channel) {
		ssh_channel_flush(self->channel); // the last message says that the run is over
	}
	ssh_channel_close(self->channel);
	free(self);
}

static const struct carrier_impl carrier_impl = {
	.name = "ssh",
	.line_max = LINE_MAX_BYTES,
	.open = open_stream,
	.write = write_stream,
	.close = close_stream,
};

void ssh_carrier_init(struct ssh_carrier *carrier, struct ssh_client *client)
{
	carrier->carrier.impl = &carrier_impl;
	carrier->client = client;
}
