/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/tcp.h"
#include "base/text.h"
#include "providers/mux/socket.h"
#include "providers/remote/remote_impl.h"

/*
 * Ports of this machine that lead to programs there. We copy what goes over them, and do not look
 * at it. The runner cannot open a stream, so it cannot make a connection to this machine.
 */

enum { NOTICE_SIZE = 256 };
static const double pause_s = 0.1; // after a failed accept, for example without free descriptors

/* A port here. */
struct remote_forward {
	struct list link; // remote.forwards
	struct remote *remote;
	struct forward_port port;
	struct forward_visit visit; // on_answered is NULL if nobody wants to know, or knows already
	ev_io listeners[FORWARD_ADDRESSES]; // own their descriptors
	ev_timer pause;                     // while it runs, no connection is accepted
};

struct remote_connection {
	struct list link; // remote.connections
	struct remote *remote;
	uint16_t here; // 0: its forward is gone
	struct mux_socket socket;
	ev_io io;          // of the socket's descriptor
	bool has_received; // bytes from there
};

/* ---- connections ---- */

static void connection_free(struct remote_connection *self)
{
	ev_io_stop(self->remote->request.loop, &self->io);
	mux_socket_reset(&self->socket); // unless it was closed before
	self->remote->connection_count--;
	list_remove(&self->link);
	free(self);
}

static void watch(struct remote_connection *self)
{
	struct ev_loop *loop = self->remote->request.loop;
	short polled = mux_socket_events(&self->socket);
	int events = (polled & POLLIN ? EV_READ : 0) | (polled & POLLOUT ? EV_WRITE : 0);
	if (ev_is_active(&self->io) && (self->io.events & (EV_READ | EV_WRITE)) == events) {
		return;
	}
	ev_io_stop(loop, &self->io);
	if (events != 0) {
		ev_io_set(&self->io, self->socket.fd, events);
		ev_io_start(loop, &self->io);
	}
}

/*
 * Tells who waits for the first visit of the port, once a connection had a request and an answer. A
 * browser may open connections on which it sends nothing.
 */
static void note_visit(struct remote_connection *self)
{
	LIST_FOR_EACH(forward, &self->remote->forwards, struct remote_forward, link) {
		void (*on_answered)(void *data) = forward->visit.on_answered;
		if (forward->port.here != self->here || !on_answered) {
			continue;
		}
		if (self->socket.has_read && self->has_received) {
			forward->visit.on_answered = NULL;
			on_answered(forward->visit.data);
		}
		return;
	}
}

/* May free the connection. */
static void move(struct remote_connection *self)
{
	self->has_received =
		self->has_received || (self->socket.in && mux_stream_peek(self->socket.in).len > 0);
	enum mux_socket_state state = mux_socket_move(&self->socket);
	note_visit(self);
	if (state == MUX_SOCKET_GOES_ON) {
		watch(self);
		return;
	}
	if (state == MUX_SOCKET_DONE) {
		ev_io_stop(self->remote->request.loop, &self->io);
		mux_socket_close(&self->socket);
	}
	connection_free(self);
}

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
	struct remote_connection *self = CONTAINER_OF(io, struct remote_connection, io);
	struct remote *remote = self->remote;
	remote_hold(remote);
	move(self);
	remote_let_go(remote);
}

static void on_stream_ready(void *data)
{
	move(data);
}

static void on_stream_reset(void *data)
{
	connection_free(data);
}

static const struct mux_stream_listener stream_listener = {
	.on_readable = on_stream_ready,
	.on_writable = on_stream_ready,
	.on_reset = on_stream_reset,
};

/* False: too many streams are open, or the runner does not read. */
static bool ask_runner(struct remote_connection *self, uint16_t inside)
{
	struct error ignored; // the client sees a reset
	struct remote *remote = self->remote;
	struct mux *mux = remote->mux;
	struct runner_message message = {.kind = RUNNER_CONNECT,
		.id = ++remote->last_id,
		.connect = {.port = inside,
			.in = {.stream = mux_next_stream(mux), .window = MUX_WINDOW_TCP}}};
	self->socket.out = mux_open(
		mux, &message.connect.in, MUX_OUT, MUX_BULK, &stream_listener, self, &ignored);
	message.connect.out =
		(struct runner_stream){.stream = mux_next_stream(mux), .window = MUX_WINDOW_TCP};
	self->socket.in = self->socket.out ? mux_open(mux, &message.connect.out, MUX_IN, MUX_BULK,
						     &stream_listener, self, &ignored)
	                                   : NULL;
	return self->socket.in && mux_send(mux, &message, &ignored);
}

static void connection_start(const struct remote_forward *forward, int fd)
{
	struct remote *remote = forward->remote;
	struct remote_connection *self = mem_alloc_zero(sizeof(*self));
	self->remote = remote;
	self->here = forward->port.here;
	mux_socket_init(&self->socket, fd);
	ev_init(&self->io, on_ready);
	list_append(&remote->connections, &self->link);
	remote->connection_count++;
	if (!ask_runner(self, forward->port.inside)) {
		connection_free(self);
		return;
	}
	mux_socket_begin(&self->socket);
	move(self);
}

/* ---- ports ---- */

/* The client sees a reset. */
static void refuse(int fd)
{
	tcp_make_abrupt(fd);
	fd_close(&fd);
}

static void tell_full(struct remote *remote)
{
	char text[NOTICE_SIZE];
	if (remote->was_full || !remote->listener->on_notice) {
		return;
	}
	remote->was_full = true;
	text_format(text, sizeof(text),
		"forward: %d connections are open; more are refused until some of them end",
		REMOTE_CONNECTIONS_MAX);
	remote->listener->on_notice(remote->data, text);
}

static void watch_listeners(struct remote_forward *self)
{
	struct ev_loop *loop = self->remote->request.loop;
	for (int i = 0; i < FORWARD_ADDRESSES; i++) {
		if (ev_is_active(&self->pause) || self->listeners[i].fd < 0) {
			ev_io_stop(loop, &self->listeners[i]);
		} else {
			ev_io_start(loop, &self->listeners[i]);
		}
	}
}

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
	watch_listeners(CONTAINER_OF(timer, struct remote_forward, pause));
}

static void on_listener(struct ev_loop *loop, ev_io *io, int events)
{
	struct remote_forward *self = io->data;
	struct remote *remote = self->remote;
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 && !io_is_transient(errno)) {
		ev_timer_set(&self->pause, pause_s, 0.);
		ev_timer_start(loop, &self->pause);
		watch_listeners(self);
	}
	if (fd < 0) {
		return;
	}
	remote_hold(remote);
	if (remote->is_detached) {
		refuse(fd); // each would queue messages for a host that is out of reach
	} else if (remote->connection_count < REMOTE_CONNECTIONS_MAX) {
		connection_start(self, fd);
	} else {
		refuse(fd);
		tell_full(remote);
	}
	remote_let_go(remote);
}

static void forward_free(struct remote_forward *self)
{
	struct ev_loop *loop = self->remote->request.loop;
	ev_timer_stop(loop, &self->pause);
	for (int i = 0; i < FORWARD_ADDRESSES; i++) {
		if (self->listeners[i].fd >= 0) {
			io_close(loop, &self->listeners[i]);
		}
	}
	list_remove(&self->link);
	free(self);
}

static void add(struct remote *remote, const struct forward_port *port,
	const int fds[FORWARD_ADDRESSES], const struct forward_visit *visit)
{
	struct remote_forward *self = mem_alloc_zero(sizeof(*self));
	self->remote = remote;
	self->port = *port;
	if (visit) {
		self->visit = *visit;
	}
	ev_timer_init(&self->pause, on_pause, 0., 0.);
	for (int i = 0; i < FORWARD_ADDRESSES; i++) {
		ev_io_init(&self->listeners[i], on_listener, fds[i], EV_READ);
		self->listeners[i].data = self;
	}
	list_append(&remote->forwards, &self->link);
	watch_listeners(self);
}

bool remote_forward(struct remote *remote, const struct forward_port *port,
	const int fds[FORWARD_ADDRESSES], const struct forward_visit *visit, struct error *err)
{
	if (!remote->is_ready || remote->is_over) {
		remote_set_lost(remote, "forward", err);
		return false;
	}
	add(remote, port, fds, visit);
	return true;
}

void remote_forward_all(struct remote *remote, struct forward_listeners *listeners)
{
	for (size_t i = 0; i < listeners->count; i++) {
		add(remote, &listeners->ports[i], listeners->fds[i], NULL);
	}
	listeners->count = 0;
}

/* They are no visits of the next forward at that port. */
static void release_connections(const struct remote *remote, uint16_t here)
{
	LIST_FOR_EACH(connection, &remote->connections, struct remote_connection, link) {
		if (connection->here == here) {
			connection->here = 0;
		}
	}
}

static void reset_connections(struct remote *remote, uint16_t here)
{
	LIST_FOR_EACH(connection, &remote->connections, struct remote_connection, link) {
		if (here == 0 || connection->here == here) {
			connection_free(connection);
		}
	}
}

void remote_forward_remove(struct remote *remote, uint16_t here, bool resets)
{
	LIST_FOR_EACH(forward, &remote->forwards, struct remote_forward, link) {
		if (forward->port.here == here) {
			remote_hold(remote);
			forward_free(forward);
			if (resets) {
				reset_connections(remote, here);
			} else {
				release_connections(remote, here);
			}
			remote_let_go(remote);
			return;
		}
	}
}

void remote_forwards_end(struct remote *remote)
{
	LIST_FOR_EACH(forward, &remote->forwards, struct remote_forward, link) {
		forward_free(forward);
	}
	reset_connections(remote, 0);
}
