/* SPDX-License-Identifier: MIT */
#include "providers/local/net/forward.h"

#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/guard.h"
#include "base/io.h"
#include "base/list.h"
#include "base/tcp.h"
#include "providers/local/cell/connector.h"
#include "providers/local/net/confinement.h"
#include "providers/local/net/pair.h"

/* The number of its descriptor. */
enum { AT_CONTROL = 0 };

enum { PAUSE_MS = 100, CONNECT_MS = 10000 };

enum connection_state { ASKING, CONNECTING, RELAYING };

struct connection {
	struct list link; // forward.connections
	struct forward *forward;
	uint32_t id;
	enum connection_state state;
	uint16_t port;     // in the cell
	bool has_ip6;      // we try ::1, after 127.0.0.1 has failed
	struct pair pair;  // its server is in the cell
	ev_timer deadline; // for connecting to the program in the cell
};

struct forward {
	struct ev_loop *loop;
	struct forward_start start;
	int fds[FORWARD_FDS_MAX]; // the connector's, then the listeners
	ev_io control;
	ev_io connector;
	ev_io listeners[FORWARD_LISTENERS_MAX];
	ev_timer pause; // while it runs, no connection is accepted
	struct list connections;
	size_t count;
	uint32_t last_id;
	bool was_full; // we have reported the limit to the broker
};

static void say(const struct forward_message *message)
{
	while (send(AT_CONTROL, message, sizeof(*message), MSG_NOSIGNAL) < 0 && errno == EINTR) {
	}
}

static void end_with(const struct error *err) ATTR_NORETURN;
static void end_with(const struct error *err)
{
	struct forward_message message = {.kind = FORWARD_FAILED,
		.is_unavailable = error_has_reason(err, "CELL_UNAVAILABLE")};
	helper_put_text(message.text, sizeof(message.text), err);
	say(&message);
	_exit(1);
}

bool forward_read(struct span packet, struct forward_message *out)
{
	if (packet.len != sizeof(*out)) {
		return false;
	}
	memcpy(out, packet.data, sizeof(*out));
	return helper_text_is_whole(out->text, sizeof(out->text)) && out->kind <= FORWARD_FULL;
}

/* ---- one connection ---- */

static void forget(struct connection *connection)
{
	struct forward *forward = connection->forward;
	ev_timer_stop(forward->loop, &connection->deadline);
	list_remove(&connection->link);
	forward->count--;
	free(connection);
}

static void end(struct connection *connection)
{
	pair_close(&connection->pair);
	forget(connection);
}

static void reset(struct connection *connection)
{
	pair_reset(&connection->pair);
	forget(connection);
}

static void ask(struct connection *connection)
{
	const struct connector_request request = {
		.id = connection->id, .port = connection->port, .has_ip6 = connection->has_ip6};
	connection->state = ASKING;
	if (!connector_ask(connection->forward->connector.fd, &request)) {
		reset(connection);
	}
}

/* Many programs listen on ::1 alone, because that is what "localhost" means to them. */
static void try_next(struct connection *connection)
{
	if (connection->pair.server.fd >= 0) {
		io_close(connection->forward->loop, &connection->pair.server);
	}
	if (connection->has_ip6) {
		reset(connection);
	} else {
		connection->has_ip6 = true;
		ask(connection);
	}
}

static void relay(struct connection *connection, int moves)
{
	switch (pair_relay(&connection->pair, moves)) {
	case PAIR_BROKEN:
		reset(connection);
		break;
	case PAIR_DONE:
		end(connection);
		break;
	case PAIR_GOES_ON:
		break;
	}
}

static void take_connection(struct connection *connection)
{
	int errnum = 0;
	socklen_t size = sizeof(errnum);
	int fd = connection->pair.server.fd;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size) != 0 || errnum != 0) {
		try_next(connection);
		return;
	}
	connection->state = RELAYING;
	ev_timer_stop(connection->forward->loop, &connection->deadline);
	pair_begin(&connection->pair);
	relay(connection, PAIR_UP | PAIR_DOWN);
}

static void on_client(struct ev_loop *loop, ev_io *io, int events)
{
	relay(CONTAINER_OF(io, struct connection, pair.client), pair_client_moves(events));
}

static void on_server(struct ev_loop *loop, ev_io *io, int events)
{
	struct connection *connection = CONTAINER_OF(io, struct connection, pair.server);
	if (connection->state == RELAYING) {
		relay(connection, pair_server_moves(events));
	} else {
		take_connection(connection);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	reset(CONTAINER_OF(timer, struct connection, deadline));
}

/* ---- connections from this machine ---- */

static void refuse_one_more(struct forward *forward, int client)
{
	const struct forward_message full = {.kind = FORWARD_FULL};
	tcp_make_abrupt(client);
	fd_close(&client);
	if (!forward->was_full) {
		forward->was_full = true;
		say(&full);
	}
}

static void add(struct forward *forward, int client, uint16_t port)
{
	if (forward->count >= FORWARD_CONNECTIONS_MAX) {
		refuse_one_more(forward, client);
		return;
	}
	struct connection *connection = mem_alloc_zero(sizeof(*connection));
	connection->forward = forward;
	connection->id = ++forward->last_id;
	connection->port = port;
	connection->pair.loop = forward->loop;
	ev_io_init(&connection->pair.client, on_client, client, EV_READ);
	ev_io_init(&connection->pair.server, on_server, -1, EV_WRITE);
	ev_timer_init(&connection->deadline, on_deadline, (double)CONNECT_MS / 1000., 0.);
	ev_timer_start(forward->loop, &connection->deadline);
	list_append(&forward->connections, &connection->link);
	forward->count++;
	ask(connection);
}

static void watch_listeners(struct forward *forward)
{
	for (size_t i = 0; i < forward->start.count; i++) {
		if (ev_is_active(&forward->pause)) {
			ev_io_stop(forward->loop, &forward->listeners[i]);
		} else {
			ev_io_start(forward->loop, &forward->listeners[i]);
		}
	}
}

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
	watch_listeners(CONTAINER_OF(timer, struct forward, pause));
}

static void on_listener(struct ev_loop *loop, ev_io *io, int events)
{
	struct forward *forward = io->data;
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		add(forward, fd, forward->start.inside[io - forward->listeners]);
	} else if (!io_is_transient(errno)) {
		ev_timer_set(&forward->pause, (double)PAUSE_MS / 1000., 0.);
		ev_timer_start(loop, &forward->pause);
		watch_listeners(forward);
	}
}

/* ---- messages of the cell and the broker ---- */

static struct connection *find(struct forward *forward, uint32_t id)
{
	LIST_FOR_EACH(connection, &forward->connections, struct connection, link) {
		if (connection->id == id && connection->state == ASKING) {
			return connection;
		}
	}
	return NULL;
}

static void on_connector(struct ev_loop *loop, ev_io *io, int events)
{
	struct forward *forward = CONTAINER_OF(io, struct forward, connector);
	struct connector_answer answer;
	int fd;
	int taken = connector_take(io->fd, &answer, &fd);
	if (taken < 0) {
		_exit(0); // the cell has ended
	}
	struct connection *connection = taken > 0 ? find(forward, answer.id) : NULL;
	if (!connection) {
		fd_close(&fd); // the connection was reset meanwhile
		return;
	}
	if (fd < 0) {
		try_next(connection);
		return;
	}
	connection->state = CONNECTING;
	ev_io_set(&connection->pair.server, fd, EV_WRITE);
	ev_io_start(loop, &connection->pair.server);
}

/* The broker sends nothing after the start, so this event means that it has ended. */
static void on_control(struct ev_loop *loop, ev_io *io, int events)
{
	_exit(0);
}

/* ---- the start ---- */

static bool take_start(struct forward *forward)
{
	size_t count = 0;
	ssize_t size = fd_take(AT_CONTROL, &forward->start, sizeof(forward->start), forward->fds,
		FORWARD_FDS_MAX, &count);
	return size == (ssize_t)sizeof(forward->start) && count > 0 &&
	       count == 1 + forward->start.count;
}

static void watch_all(struct forward *forward)
{
	ev_io_init(&forward->control, on_control, AT_CONTROL, EV_READ);
	ev_io_init(&forward->connector, on_connector, forward->fds[0], EV_READ);
	ev_timer_init(&forward->pause, on_pause, 0., 0.);
	ev_io_start(forward->loop, &forward->control);
	ev_io_start(forward->loop, &forward->connector);
	for (size_t i = 0; i < forward->start.count; i++) {
		ev_io_init(&forward->listeners[i], on_listener, forward->fds[1 + i], EV_READ);
		forward->listeners[i].data = forward;
	}
	watch_listeners(forward);
}

static bool set_up(struct forward *forward, struct error *err)
{
	if (!confinement_become(forward->start.uid, forward->start.gid, err) ||
		!confinement_prepare(err)) {
		return false;
	}
	list_init(&forward->connections);
	/*
	 * Not epoll: after we close a socket, the cell's first process may still have it open. Then
	 * epoll would go on reporting its events, for the next descriptor with the same number.
	 */
	forward->loop = ev_loop_new(EVBACKEND_POLL | EVFLAG_NOENV);
	if (!forward->loop) {
		return error_set(err, ERROR_SYSTEM, "making an event loop");
	}
	watch_all(forward);
	return confinement_apply(CONFINEMENT_FORWARD, err);
}

bool forward_is_asked(int argc, char *const *argv)
{
	return argc == 2 && strcmp(argv[1], FORWARD_ARGUMENT) == 0;
}

void forward_run(void)
{
	struct forward *forward = mem_alloc_zero(sizeof(*forward)); // until this process ends
	const struct forward_message ready = {.kind = FORWARD_READY};
	struct error err;
	struct stat status;
	prctl(PR_SET_NAME, GUARD_NAME);
	if (fstat(AT_CONTROL, &status) != 0 || !S_ISSOCK(status.st_mode) || !take_start(forward)) {
		_exit(1); // not started by the broker, or the broker has ended
	}
	if (!set_up(forward, &err)) {
		error_prefix(&err, "starting the process that forwards ports");
		end_with(&err);
	}
	say(&ready);
	ev_run(forward->loop, 0);
	_exit(0);
}
