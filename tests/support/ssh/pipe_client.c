/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/pipe_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "providers/provider.h"
#include "tests/support/ssh/pipe_channel.h"

struct pipe_client_options pipe_client_options = {.shell = "/bin/sh"};
static struct list clients = {&clients, &clients};

static void pipe_close(struct ssh_client *client)
{
	struct pipe_client *self = CONTAINER_OF(client, struct pipe_client, client);
	LIST_FOR_EACH(channel, &self->channels, struct pipe_channel, link) {
		pipe_close_channel(&channel->channel);
	}
	soon_stop(&self->ready);
	list_remove(&self->link);
	free(self);
	while (list_is_empty(&clients) && waitpid(-1, NULL, WNOHANG) > 0) {
	}
}

static const struct ssh_client_impl pipe_impl = {
	.name = "pipe",
	.close = pipe_close,
	.open = pipe_open,
	.write = pipe_write,
	.send_eof = pipe_send_eof,
	.resume = pipe_resume,
	.close_channel = pipe_close_channel,
};

static void refuse(struct pipe_client *self, const char *reason)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, reason, "no more of them");
	self->listener->on_lost(self->data, &err);
}

static void cut(struct pipe_client *self);

static void on_ready(struct soon *soon)
{
	struct pipe_client *self = CONTAINER_OF(soon, struct pipe_client, ready);
	size_t max = pipe_client_options.max_connections;
	if (max > 0 && pipe_client_options.connection_count > max) {
		refuse(self, "HOST_UNREACHABLE");
	} else if (pipe_client_options.login_failures > 0) {
		pipe_client_options.login_failures--;
		refuse(self, pipe_client_options.login_reason);
	} else if (pipe_client_options.drops > 0) {
		pipe_client_options.drops--;
		self->listener->on_ready(self->data);
		cut(self);
	} else {
		self->listener->on_ready(self->data);
	}
}

static void note_user(const struct ssh_target *target)
{
	char *users = pipe_client_options.users;
	size_t len = strlen(users);
	snprintf(users + len, sizeof(pipe_client_options.users) - len, "%s%s ",
		target->user_is_secret ? "" : "?", target->user ? target->user : "");
}

struct ssh_client *pipe_client_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err)
{
	struct pipe_client *self = mem_alloc_zero(sizeof(*self));
	self->client.impl = &pipe_impl;
	self->loop = context->loop;
	self->listener = listener;
	self->data = data;
	list_init(&self->channels);
	list_append(&clients, &self->link);
	soon_init(&self->ready, self->loop, on_ready);
	soon_start(&self->ready);
	pipe_client_options.connection_count++;
	note_user(target);
	return &self->client;
}

/* ---- trouble ---- */

static void cut(struct pipe_client *self)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST", "the connection was cut");
	while (!list_is_empty(&self->channels)) {
		struct pipe_channel *channel =
			LIST_FIRST(&self->channels, struct pipe_channel, link);
		void *data = channel->data;
		const struct ssh_channel_listener *listener = channel->listener;
		list_remove(&channel->link);
		list_append(&self->channels, &channel->link);
		listener->on_lost(data, &err);
		if (list_is_empty(&clients)) {
			return; // a handler has closed the client
		}
	}
	self->listener->on_lost(self->data, &err);
}

void pipe_clients_cut(void)
{
	cut(LIST_FIRST(&clients, struct pipe_client, link));
}

void pipe_clients_cut_last(void)
{
	cut(LIST_ENTRY(clients.prev, struct pipe_client, link));
}

void pipe_clients_freeze(bool is_frozen)
{
	pipe_is_frozen = is_frozen;
	LIST_FOR_EACH(client, &clients, struct pipe_client, link) {
		LIST_FOR_EACH(channel, &client->channels, struct pipe_channel, link) {
			pipe_channel_freeze(channel);
		}
	}
}

void pipe_clients_freeze_control(bool is_frozen)
{
	struct pipe_client *client = LIST_ENTRY(clients.next, struct pipe_client, link);
	struct pipe_channel *control = LIST_ENTRY(client->channels.next, struct pipe_channel, link);
	control->is_frozen = is_frozen;
	pipe_channel_freeze(control);
}
