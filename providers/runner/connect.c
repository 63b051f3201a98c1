/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/mux/socket.h"
#include "providers/runner/runner.h"

/*
 * Connections that the broker asks for, to programs that listen on this machine's loopback. The
 * broker names only a port, so no message can make the runner reach another machine.
 */

enum { SYN_COUNT = 3 }; // a program that accepts nothing is given up after about 15 s

struct connection {
	struct list link; // runner.connections
	struct runner *runner;
	struct mux_socket socket;
	uint16_t port;
	bool has_ip6; // we try ::1, after 127.0.0.1 has failed
	bool is_connected;
	bool is_over; // it is freed in the next turn, because this turn may still have its events
};

/* Resets it, unless its end was passed on in both directions. */
static void end(struct connection *connection, bool is_done)
{
	if (is_done) {
		mux_socket_close(&connection->socket);
	} else {
		mux_socket_reset(&connection->socket);
	}
	connection->runner->connection_count -= connection->is_over ? 0 : 1;
	connection->is_over = true;
}

static void move(struct connection *connection)
{
	enum mux_socket_state state = mux_socket_move(&connection->socket);
	if (state != MUX_SOCKET_GOES_ON) {
		end(connection, state == MUX_SOCKET_DONE);
	}
}

/* ---- connecting ---- */

static int begin_connect(const void *name, socklen_t size, int family)
{
	const int count = SYN_COUNT;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &count, sizeof(count));
	if (connect(fd, name, size) != 0 && errno != EINPROGRESS) {
		fd_close(&fd);
	}
	return fd;
}

static int connect_ip4(uint16_t port)
{
	const struct sockaddr_in name = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return begin_connect(&name, sizeof(name), AF_INET);
}

static int connect_ip6(uint16_t port)
{
	const struct sockaddr_in6 name = {.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	return begin_connect(&name, sizeof(name), AF_INET6);
}

/* Many programs listen on ::1 alone, because that is what "localhost" means to them. */
static void try_ip6(struct connection *connection)
{
	fd_close(&connection->socket.fd);
	if (!connection->has_ip6) {
		connection->has_ip6 = true;
		connection->socket.fd = connect_ip6(connection->port);
	}
	if (connection->socket.fd < 0) {
		end(connection, false);
	}
}

static void take_connection(struct connection *connection)
{
	int errnum = 0;
	socklen_t size = sizeof(errnum);
	int fd = connection->socket.fd;
	bool is_known = getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size) == 0;
	if (is_known && errnum == ECONNREFUSED) {
		try_ip6(connection);
		return;
	}
	if (!is_known || errnum != 0) { // the program has reset it already, or does not accept it
		end(connection, false);
		return;
	}
	connection->is_connected = true;
	mux_socket_begin(&connection->socket);
	move(connection);
}

/* ---- events ---- */

static void on_ready(void *data, short events)
{
	struct connection *connection = data;
	if (connection->is_over) {
		return;
	}
	if (connection->is_connected) {
		move(connection);
	} else {
		take_connection(connection);
	}
}

static void on_stream_ready(void *data)
{
	struct connection *connection = data;
	if (connection->is_connected) {
		move(connection);
	}
}

static void on_stream_reset(void *data)
{
	end(data, false);
}

static const struct mux_stream_listener stream_listener = {
	.on_readable = on_stream_ready,
	.on_writable = on_stream_ready,
	.on_reset = on_stream_reset,
};

/* ---- life ---- */

static void connection_free(struct connection *connection)
{
	list_remove(&connection->link);
	free(connection);
}

/* False: there are too many connections or streams. */
static bool open_streams(struct connection *connection, const struct runner_connect *message)
{
	struct error ignored; // the reset says enough
	struct runner *runner = connection->runner;
	struct mux_socket *socket = &connection->socket;
	return runner->connection_count <= RUNNER_CONNECTIONS_MAX &&
	       (socket->in = mux_open(runner->mux, &message->in, MUX_IN, MUX_BULK, &stream_listener,
			connection, &ignored)) &&
	       (socket->out = mux_open(runner->mux, &message->out, MUX_OUT, MUX_BULK,
			&stream_listener, connection, &ignored));
}

void connection_start(struct runner *runner, const struct runner_message *message)
{
	const struct runner_connect *wanted = &message->connect;
	struct connection *connection = mem_alloc_zero(sizeof(*connection));
	connection->runner = runner;
	connection->port = (uint16_t)wanted->port;
	mux_socket_init(&connection->socket, -1);
	list_append(&runner->connections, &connection->link);
	runner->connection_count++;
	if (!open_streams(connection, wanted)) {
		end(connection, false);
		mux_refuse(runner->mux, &wanted->in);
		mux_refuse(runner->mux, &wanted->out);
		return;
	}
	connection->socket.fd = connect_ip4(connection->port);
	if (connection->socket.fd < 0) {
		try_ip6(connection);
	}
}

void connections_watch(struct runner *runner)
{
	LIST_FOR_EACH(connection, &runner->connections, struct connection, link) {
		const struct mux_socket *socket = &connection->socket;
		short events = connection->is_connected ? mux_socket_events(socket) : POLLOUT;
		if (connection->is_over) {
			connection_free(connection);
		} else if (events != 0) {
			runner_watch(runner, socket->fd, events, on_ready, connection);
		}
	}
}

void connections_end(struct runner *runner)
{
	LIST_FOR_EACH(connection, &runner->connections, struct connection, link) {
		end(connection, false);
		connection_free(connection);
	}
}
