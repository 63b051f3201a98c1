/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "providers/ssh/libssh2_client.h"

/*
 * A connection through another one (ProxyJump). It consists of a client of the previous jump host,
 * a TCP channel from there, and a pair of sockets: the channel's bytes go through one end, and the
 * next SSH connection uses the other end. The pump runs on the loop, so nothing here blocks.
 */
enum { PUMP_SIZE = 64 * 1024 };

struct jump {
	struct route route;
	struct ssh_client *via;
	struct ssh_channel *channel;
	struct ev_timer deadline;
	bool is_reached;
	int fd;       // our end; -1: none
	int other_fd; // the user's end, until it is handed over
	struct ev_io readable;
	struct ev_io writable;
	struct buf unsent; // from our end, not yet accepted by the channel
};

static void jump_close(struct route *route)
{
	struct jump *jump = CONTAINER_OF(route, struct jump, route);
	struct ev_loop *loop = route->context->loop;
	ev_timer_stop(loop, &jump->deadline);
	ev_io_stop(loop, &jump->readable);
	ev_io_stop(loop, &jump->writable);
	ssh_channel_close(jump->channel);
	ssh_client_close(jump->via);
	fd_close(&jump->fd);
	fd_close(&jump->other_fd);
	buf_finish(&jump->unsent);
	free(jump);
}

/* Before the target is reached this is a failure; afterwards the end of the socket shows it. */
static void jump_ended(struct jump *jump, const struct error *failure)
{
	struct ev_loop *loop = jump->route.context->loop;
	struct error err = *failure;
	ev_io_stop(loop, &jump->readable);
	ev_io_stop(loop, &jump->writable);
	ev_timer_stop(loop, &jump->deadline);
	fd_close(&jump->fd);
	if (!jump->is_reached) {
		error_prefix(
			&err, "connecting through another host to %s", jump->route.target->alias);
		jump->route.listener->on_failed(jump->route.data, &err);
	}
}

/* ---- the pump ---- */

static void send_unsent(struct jump *jump)
{
	size_t taken = ssh_channel_write(jump->channel, buf_span(&jump->unsent));
	buf_consume(&jump->unsent, taken);
	if (jump->unsent.len > 0) {
		ev_io_stop(jump->route.context->loop, &jump->readable);
	} else if (jump->fd >= 0) {
		ev_io_start(jump->route.context->loop, &jump->readable);
	}
}

static void pump_up(struct jump *jump)
{
	char *room = buf_reserve(&jump->unsent, PUMP_SIZE - jump->unsent.len, NULL);
	ssize_t count = recv(jump->fd, room, PUMP_SIZE - jump->unsent.len, 0);
	if (count > 0) {
		buf_commit(&jump->unsent, (size_t)count);
		send_unsent(jump);
	} else if (count == 0 || !io_is_transient(errno)) {
		ev_io_stop(jump->route.context->loop, &jump->readable);
		ssh_channel_send_eof(jump->channel);
	}
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	pump_up(CONTAINER_OF(watcher, struct jump, readable));
}

static void on_writable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct jump *jump = CONTAINER_OF(watcher, struct jump, writable);
	ev_io_stop(loop, watcher);
	ssh_channel_resume(jump->channel, SSH_STREAM_OUT);
}

static size_t on_bytes(void *data, enum ssh_stream stream, struct span bytes)
{
	struct jump *jump = data;
	if (jump->fd < 0 || stream != SSH_STREAM_OUT) {
		return bytes.len;
	}
	ssize_t count = send(jump->fd, bytes.data, bytes.len, MSG_NOSIGNAL);
	if (count < 0 && !io_is_transient(errno)) {
		return bytes.len; // nobody reads it any more
	}
	size_t taken = count > 0 ? (size_t)count : 0;
	if (taken < bytes.len) {
		ev_io_start(jump->route.context->loop, &jump->writable);
	}
	return taken;
}

static void on_channel_writable(void *data)
{
	send_unsent(data);
}

static void on_eof(void *data, enum ssh_stream stream)
{
	struct jump *jump = data;
	if (jump->fd >= 0 && stream == SSH_STREAM_OUT) {
		(void)shutdown(jump->fd, SHUT_WR);
	}
}

static void on_closed(void *data, const struct ssh_channel_end *end)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "HOST_UNREACHABLE", "the connection was closed");
	jump_ended(data, &err);
}

/* ---- the previous jump host ---- */

static void on_open(void *data)
{
	struct jump *jump = data;
	struct ev_loop *loop = jump->route.context->loop;
	int fd = jump->other_fd;
	ev_timer_stop(loop, &jump->deadline);
	ev_io_start(loop, &jump->readable);
	jump->is_reached = true;
	jump->other_fd = -1;
	jump->route.listener->on_reached(jump->route.data, fd);
}

static void on_refused(void *data, const struct error *failure)
{
	struct jump *jump = data;
	const struct ssh_target *target = jump->route.target;
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "HOST_UNREACHABLE",
		"%s cannot connect to %s port %d: %s", target->via->alias, target->host,
		target->port, failure->text);
	jump_ended(jump, &err);
}

/* The on_lost of the jump host's client follows with the same error. */
static void on_channel_lost(void *data, const struct error *err)
{
}

static const struct ssh_channel_listener channel_listener = {
	.on_open = on_open,
	.on_refused = on_refused,
	.on_bytes = on_bytes,
	.on_eof = on_eof,
	.on_writable = on_channel_writable,
	.on_closed = on_closed,
	.on_lost = on_channel_lost,
};

static void on_progress(void *data, const char *text)
{
	struct jump *jump = data;
	jump->route.listener->on_progress(jump->route.data, text);
}

static void on_ready(void *data)
{
	struct jump *jump = data;
	const struct ssh_target *target = jump->route.target;
	struct error err;
	jump->channel =
		ssh2_open_tcp(jump->via, target->host, target->port, &channel_listener, jump, &err);
	if (!jump->channel) {
		jump_ended(jump, &err);
		return;
	}
	ev_timer_again(jump->route.context->loop, &jump->deadline);
	char text[512];
	text_format(text, sizeof(text), "Connecting to %s (%s port %d, from %s)", target->alias,
		target->host, target->port, target->via->alias);
	jump->route.listener->on_progress(jump->route.data, text);
}

static void on_lost(void *data, const struct error *err)
{
	jump_ended(data, err);
}

static const struct ssh_client_listener client_listener = {
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_lost = on_lost,
};

static void on_deadline(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	struct jump *jump = CONTAINER_OF(watcher, struct jump, deadline);
	struct error err;
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
		"%s did not connect to %s port %d within %g s (connect-timeout)",
		jump->route.target->via->alias, jump->route.target->host, jump->route.target->port,
		watcher->repeat);
	jump_ended(jump, &err);
}

struct route *route_jump(const struct route *request, struct error *err)
{
	int sockets[2];
	if (!socket_pair(sockets, err)) {
		return NULL;
	}
	struct jump *jump = mem_alloc_zero(sizeof(*jump));
	jump->route = *request;
	jump->route.close = jump_close;
	jump->fd = sockets[0];
	jump->other_fd = sockets[1];
	buf_init(&jump->unsent, PUMP_SIZE);
	ev_io_init(&jump->readable, on_readable, jump->fd, EV_READ);
	ev_io_init(&jump->writable, on_writable, jump->fd, EV_WRITE);
	ev_timer_init(&jump->deadline, on_deadline, 0,
		(double)request->target->connect_timeout_ms / 1000);
	jump->via = ssh_libssh2_connect(
		request->context, request->target->via, &client_listener, jump, err);
	if (!jump->via) {
		jump_close(&jump->route);
		return NULL;
	}
	return &jump->route;
}
