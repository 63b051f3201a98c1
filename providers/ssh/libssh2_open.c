/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "providers/ssh/libssh2_client.h"

/*
 * Opens channels. libssh2 can open one at a time and keeps its progress in the session: the same
 * call must be repeated until it has finished, even if nobody wants the channel any more.
 *
 * A probe is a request that always fails (RFC 4254, 5.1: "unknown channel type"). The answer shows
 * that the server is alive; the answer to libssh2's own keepalive would stay in the session's
 * memory for good. It is also the only call that lets libssh2 read while there is no channel. A
 * gateway may open a channel of any type before it knows what is behind it; such a channel is
 * closed.
 */
#define PROBE_TYPE "probe@acp-broker"
enum { KEEPALIVE_S = 2 };

static LIBSSH2_CHANNEL *call_open(struct ssh2_client *client)
{
	const struct ssh2 *ssh2 = client->ssh2;
	const struct ssh2_channel *channel = client->opening;
	if (channel && channel->host) {
		return ssh2->channel_direct_tcpip_ex(
			client->session, channel->host, channel->port, "127.0.0.1", 0);
	}
	const char *type = channel ? "session" : PROBE_TYPE;
	return ssh2->channel_open_ex(client->session, type, (unsigned int)strlen(type),
		CHANNEL_WINDOW, CHANNEL_PACKET, NULL, 0);
}

static void open_refused(struct ssh2_client *client, struct ssh2_channel *channel)
{
	bool is_refusal =
		client->ssh2->session_last_errno(client->session) == LIBSSH2_ERROR_CHANNEL_FAILURE;
	if (!is_refusal) {
		client_check(client, client->ssh2->session_last_errno(client->session));
	} else if (channel->host) {
		channel_refused(
			channel, ERROR_UNAVAILABLE, ssh2_last_text(client->ssh2, client->session));
	} else {
		channel_refused(
			channel, ERROR_LIMIT, "the server opens no further channel (MaxSessions)");
	}
}

static struct ssh2_channel *channel_add(struct ssh2_client *client)
{
	struct ssh2_channel *channel = mem_alloc_zero(sizeof(*channel));
	channel->base.client = &client->base;
	buf_init(&channel->in, SSH_CHANNEL_BUFFER);
	for (size_t i = 0; i < ARRAY_LENGTH(channel->streams); i++) {
		buf_init(&channel->streams[i].rest, CHANNEL_READ_SIZE);
	}
	list_append(&client->channels, &channel->link);
	client->channel_count++;
	return channel;
}

/*
 * Closes it like a channel that its user has closed; libssh2 frees it when the server has answered.
 */
static void close_probe(struct ssh2_client *client, LIBSSH2_CHANNEL *handle)
{
	struct ssh2_channel *channel = channel_add(client);
	channel->state = CHANNEL_ENDED;
	channel->is_closed = true;
	channel->handle = handle;
	client->probe = channel;
	client->wants_turn = true;
}

/* True: it has finished. */
static bool open_go_on(struct ssh2_client *client)
{
	LIBSSH2_CHANNEL *handle = call_open(client);
	if (!handle && client->ssh2->session_last_errno(client->session) == LIBSSH2_ERROR_EAGAIN) {
		return false;
	}
	struct ssh2_channel *channel = client->opening;
	client->opening = NULL;
	if (!channel) {
		client->is_probing = false;
		if (handle) {
			close_probe(client, handle);
		}
		return true;
	}
	if (!handle) {
		open_refused(client, channel);
		return true;
	}
	channel->handle = handle;
	channel->state = channel->host ? CHANNEL_RUNNING : CHANNEL_STARTING;
	if (channel->host && channel_is_live(channel)) {
		channel->listener->on_open(channel->data);
	}
	client->wants_turn = true;
	return true;
}

static struct ssh2_channel *first_waiting(const struct ssh2_client *client)
{
	LIST_FOR_EACH(channel, &client->channels, struct ssh2_channel, link) {
		if (channel->state == CHANNEL_WAITING && !channel->is_closed) {
			return channel;
		}
	}
	return NULL;
}

bool open_is_due(const struct ssh2_client *client)
{
	return client->opening || client->is_probing || first_waiting(client);
}

void open_step(struct ssh2_client *client)
{
	while (!client->has_error && !client->is_closed) {
		if (!client->opening && !client->is_probing) {
			client->opening = first_waiting(client);
			if (!client->opening) {
				return;
			}
			client->opening->state = CHANNEL_OPENING;
		}
		if (!open_go_on(client)) {
			return;
		}
	}
}

void open_probe(struct ssh2_client *client)
{
	if (!client->opening && !client->is_probing && !client->probe) {
		client->is_probing = true;
	} else if (!client->is_probing) {
		/*
		 * The server may be slow to open a channel; keepalive checks separately whether it
		 * is alive.
		 */
		int next_s;
		client->ssh2->keepalive_config(client->session, 1, KEEPALIVE_S);
		client_check(client, client->ssh2->keepalive_send(client->session, &next_s));
	}
}

static struct ssh2_channel *channel_create(struct ssh2_client *client,
	const struct ssh_channel_listener *listener, void *data, struct error *err)
{
	if (client->stage != CLIENT_READY || client->is_closed) {
		error_set_reason(err, ERROR_UNAVAILABLE, "LINK_LOST",
			"opening a channel to %s: there is no connection", client->target->alias);
		return NULL;
	}
	if (client->channel_count >= CHANNELS_MAX) {
		error_set(err, ERROR_LIMIT,
			"opening a channel to %s: %d channels are open or being opened",
			client->target->alias, CHANNELS_MAX);
		return NULL;
	}
	struct ssh2_channel *channel = channel_add(client);
	channel->listener = listener;
	channel->data = data;
	client_ask_turn(client);
	return channel;
}

struct ssh_channel *ssh2_open_command(struct ssh_client *base, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err)
{
	struct ssh2_channel *channel = channel_create(client_of(base), listener, data, err);
	if (!channel) {
		return NULL;
	}
	channel->command = mem_strdup(command);
	return &channel->base;
}

struct ssh_channel *ssh2_open_tcp(struct ssh_client *base, const char *host, int port,
	const struct ssh_channel_listener *listener, void *data, struct error *err)
{
	struct ssh2_channel *channel = channel_create(client_of(base), listener, data, err);
	if (!channel) {
		return NULL;
	}
	channel->host = mem_strdup(host);
	channel->port = port;
	return &channel->base;
}
