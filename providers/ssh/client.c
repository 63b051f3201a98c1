/* SPDX-License-Identifier: MIT */
#include "providers/ssh/client.h"

#include <assert.h>

const char *ssh_client_name(const struct ssh_client *client)
{
	return client->impl->name;
}

void ssh_client_close(struct ssh_client *client)
{
	if (client) {
		client->impl->close(client);
	}
}

struct ssh_channel *ssh_channel_open(struct ssh_client *client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err)
{
	assert(listener->on_refused && listener->on_bytes && listener->on_closed);
	return client->impl->open(client, command, listener, data, err);
}

size_t ssh_channel_write(struct ssh_channel *channel, struct span bytes)
{
	return channel->client->impl->write(channel, bytes);
}

void ssh_channel_flush(struct ssh_channel *channel)
{
	if (channel->client->impl->flush) {
		channel->client->impl->flush(channel);
	}
}

void ssh_channel_send_eof(struct ssh_channel *channel)
{
	channel->client->impl->send_eof(channel);
}

void ssh_channel_resume(struct ssh_channel *channel, enum ssh_stream stream)
{
	channel->client->impl->resume(channel, stream);
}

void ssh_channel_close(struct ssh_channel *channel)
{
	if (channel) {
		channel->client->impl->close_channel(channel);
	}
}
