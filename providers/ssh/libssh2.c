/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/fd.h"
#include "providers/ssh/libssh2_client.h"

/* The client based on libssh2: how it becomes ready, and how it ends. */

static void on_progress(void *data, const char *text)
{
	struct ssh2_client *client = data;
	if (client->listener->on_progress) {
		client->listener->on_progress(client->data, text);
	}
}

static void connect_failed(struct ssh2_client *client, const struct error *failure)
{
	struct error err = *failure;
	client->stage = CLIENT_LOST;
	if (!err.reason) {
		err.reason = "HOST_UNREACHABLE";
	}
	route_add_words(client->route, &err);
	client->listener->on_lost(client->data, &err);
}

static void on_login_failed(void *data, const struct error *err)
{
	struct ssh2_client *client = data;
	client->login = NULL;
	connect_failed(client, err);
}

static void on_login_done(void *data, LIBSSH2_SESSION *session, int fd)
{
	struct ssh2_client *client = data;
	client->login = NULL;
	client_begin(client, session, fd);
	client->listener->on_ready(client->data);
}

static const struct login_listener login_listener = {
	.on_progress = on_progress,
	.on_done = on_login_done,
	.on_failed = on_login_failed,
};

static void on_route_failed(void *data, const struct error *err)
{
	connect_failed(data, err);
}

static void on_reached(void *data, int fd)
{
	struct ssh2_client *client = data;
	struct error err;
	client->login = login_start(
		client->context, client->ssh2, client->target, fd, &login_listener, client, &err);
	if (client->login) {
		client->stage = CLIENT_LOGGING_IN;
	} else {
		connect_failed(client, &err);
	}
}

static const struct route_listener route_listener = {
	.on_progress = on_progress,
	.on_reached = on_reached,
	.on_failed = on_route_failed,
};

static void close_client(struct ssh_client *base)
{
	struct ssh2_client *client = client_of(base);
	client->is_closed = true;
	if (!client->in_turn) {
		client_finish(client);
	}
}

static const struct ssh_client_impl impl = {
	.name = "libssh2",
	.close = close_client,
	.open = ssh2_open_command,
	.write = ssh2_write,
	.flush = ssh2_flush,
	.send_eof = ssh2_send_eof,
	.resume = ssh2_resume,
	.close_channel = ssh2_close_channel,
};

struct ssh_client *ssh_libssh2_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err)
{
	if (target->unknown_setting) {
		error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
			"connecting to %s: ssh_config sets %s, which the libssh2 client does not "
			"support%s",
			target->alias, target->unknown_setting, ssh_target_other_client(target));
		return NULL;
	}
	if (ssh_target_has_forwards(target) && ssh_target_may_use_program(target)) {
		error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
			"connecting to %s: ssh_config sets %s, which the libssh2 client does not "
			"support",
			target->alias, target->forwards[0]);
		return NULL;
	}
	const struct ssh2 *ssh2 = ssh2_open(err);
	if (!ssh2) {
		return NULL;
	}
	struct ssh2_client *client = mem_alloc_zero(sizeof(*client));
	client->base.impl = &impl;
	client->context = context;
	client->target = target;
	client->listener = listener;
	client->data = data;
	client->ssh2 = ssh2;
	client->fd = -1;
	list_init(&client->channels);
	buf_init(&client->out, OUTPUT_MAX);
	client->route = route_open(context, target, &route_listener, client, err);
	if (!client->route) {
		client_finish(client);
		return NULL;
	}
	return &client->base;
}
