/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/text.h"
#include "providers/ssh/libssh2_client.h"
#include "providers/ssh/libssh2_session.h"

void client_set_lost(struct ssh2_client *client, const char *format, ...)
{
	char why[ERROR_TEXT_MAX / 2];
	if (client->has_error || client->is_dying) {
		return;
	}
	va_list args;
	va_start(args, format);
	text_vformat(why, sizeof(why), format, args);
	va_end(args);
	client->has_error = true;
	error_set_reason(&client->error, ERROR_UNAVAILABLE, "LINK_LOST",
		"the connection to %s was lost: %s", client->target->alias, why);
}

void client_check(struct ssh2_client *client, long outcome)
{
	if (outcome < 0 && outcome != LIBSSH2_ERROR_EAGAIN) {
		client_set_lost(client, "%s (libssh2's error %ld)",
			ssh2_last_text(client->ssh2, client->session), outcome);
	}
}

void client_ask_turn(struct ssh2_client *client)
{
	if (client->in_turn) {
		client->wants_turn = true;
	} else if (client->stage == CLIENT_READY) {
		/*
		 * The prepare watcher runs before the loop waits again. A request may come after
		 * the prepare watchers have run; `soon` is for that case.
		 */
		ev_prepare_start(client->context->loop, &client->next);
		soon_start(&client->soon);
	}
}

static void stop_asking(struct ssh2_client *client)
{
	ev_prepare_stop(client->context->loop, &client->next);
	soon_stop(&client->soon);
}

/* Returns any channel: reading one makes libssh2 receive data for all of them. */
static LIBSSH2_CHANNEL *any_handle(struct ssh2_client *client)
{
	LIST_FOR_EACH(channel, &client->channels, struct ssh2_channel, link) {
		if (channel->handle) {
			return channel->handle;
		}
	}
	return NULL;
}

enum { UNUSED_STREAM = 2 }; // nobody sends on it

static void take_input(struct ssh2_client *client, bool is_readable)
{
	LIBSSH2_CHANNEL *handle = any_handle(client);
	/* The socket shows whether new data has come; libssh2's own buffer is read in any case. */
	client->input_left = is_readable ? TURN_INPUT_MAX : 0;
	if (handle) {
		char byte;
		ssize_t count =
			client->ssh2->channel_read_ex(handle, UNUSED_STREAM, &byte, sizeof(byte));
		client_check(client, count);
	} else if (is_readable && !open_is_due(client)) {
		open_probe(client);
	}
}

static void step_channels(struct ssh2_client *client)
{
	LIST_FOR_EACH(channel, &client->channels, struct ssh2_channel, link) {
		if (!client->is_closed) {
			channel_step(channel);
		}
	}
}

/* Notifies every channel and then the client's user; handlers may close any of them. */
static void tell_lost(struct ssh2_client *client)
{
	client->stage = CLIENT_LOST;
	route_add_words(client->route, &client->error);
	alive_end(client);
	LIST_FOR_EACH(channel, &client->channels, struct ssh2_channel, link) {
		if (channel_is_live(channel)) {
			channel->state = CHANNEL_ENDED;
			if (channel->listener->on_lost) {
				channel->listener->on_lost(channel->data, &client->error);
			}
		}
	}
	if (!client->is_closed) {
		client->listener->on_lost(client->data, &client->error);
	}
}

static void set_watchers(struct ssh2_client *client)
{
	struct ev_loop *loop = client->context->loop;
	if (client->stage != CLIENT_READY) {
		ev_io_stop(loop, &client->readable);
		ev_io_stop(loop, &client->writable);
		stop_asking(client);
		return;
	}
	if (client->out.len > 0) {
		ev_io_start(loop, &client->writable);
	} else {
		ev_io_stop(loop, &client->writable);
	}
	if (client->wants_turn) {
		soon_start(&client->soon);
	}
}

static void client_turn(struct ssh2_client *client, bool is_readable)
{
	if (client->stage != CLIENT_READY) {
		return;
	}
	client->in_turn = true;
	client->wants_turn = client->awaits_room = false;
	stop_asking(client);
	take_input(client, is_readable);
	open_step(client);
	step_channels(client);
	client->input_left = 0;
	if (!client->is_closed) {
		wire_flush(client);
	}
	/* Perhaps the server has nothing to send that would begin another turn. */
	if (client->awaits_room && client->out.len < OUTPUT_MARK) {
		client->wants_turn = true;
	}
	if (client->has_error && !client->is_closed) {
		tell_lost(client);
	}
	client->in_turn = false;
	if (client->is_closed) {
		client_finish(client);
	} else {
		set_watchers(client);
	}
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	client_turn(CONTAINER_OF(watcher, struct ssh2_client, readable), events & EV_READ);
}

static void on_writable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	client_turn(CONTAINER_OF(watcher, struct ssh2_client, writable), false);
}

static void on_soon(struct soon *soon)
{
	client_turn(CONTAINER_OF(soon, struct ssh2_client, soon), false);
}

static void on_next(struct ev_loop *loop, struct ev_prepare *watcher, int events)
{
	client_turn(CONTAINER_OF(watcher, struct ssh2_client, next), false);
}

void client_begin(struct ssh2_client *client, LIBSSH2_SESSION *session, int fd)
{
	client->stage = CLIENT_READY;
	client->session = session;
	client->fd = fd;
	client->ssh2->session_set_blocking(session, 0);
	wire_begin(client);
	ev_io_init(&client->readable, on_readable, fd, EV_READ);
	ev_io_init(&client->writable, on_writable, fd, EV_WRITE);
	soon_init(&client->soon, client->context->loop, on_soon);
	ev_prepare_init(&client->next, on_next);
	ev_io_start(client->context->loop, &client->readable);
	alive_begin(client);
}

/* Tells the server if that does not block, then frees libssh2's memory. */
static void end_session(struct ssh2_client *client)
{
	if (!client->has_error && !client->ends_silently) {
		(void)client->ssh2->session_disconnect_ex(
			client->session, SSH_DISCONNECT_BY_APPLICATION, "closed", "");
	}
	if (!client->has_error) {
		wire_flush(client);
	}
	/* From now on everything that libssh2 tries to send or wait for ends at once. */
	client->is_dying = true;
	ssh2_session_destroy(client->ssh2, client->session);
	client->session = NULL;
}

void client_finish(struct ssh2_client *client)
{
	struct ev_loop *loop = client->context->loop;
	login_abandon(client->login);
	if (client->session) {
		ev_io_stop(loop, &client->readable);
		stop_asking(client);
		ev_io_stop(loop, &client->writable);
		alive_end(client);
		end_session(client);
	}
	while (!list_is_empty(&client->channels)) {
		channel_free(LIST_FIRST(&client->channels, struct ssh2_channel, link));
	}
	assert(client->channel_count == 0);
	route_close(client->route);
	fd_close(&client->fd);
	buf_finish(&client->out);
	free(client);
}
