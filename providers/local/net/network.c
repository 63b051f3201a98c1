/* SPDX-License-Identifier: MIT */
#include "providers/local/net/network.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/soon.h"
#include "providers/local/net/relay.h"
#include "providers/local/net/wire.h"

/* How many messages are read: so many at once, and so many a second. */
enum { MESSAGES_MAX = 2048, REFILL = 100, REFILL_MS = 100 };

struct network {
	struct ev_loop *loop;
	const struct network_listener *listener;
	void *data;
	struct process *process;
	ev_io control;     // -1 once the process has ended
	ev_timer deadline; // of the start
	ev_timer refill;   // runs while fewer than MESSAGES_MAX may be read
	int messages;      // that may be read now
	struct soon lost;  // a verdict could not be sent
	bool has_ended;    // on_end was raised
};

/* The owner may stop it in the call. */
static void raise_end(struct network *network, const struct error *err)
{
	if (network->has_ended) {
		return;
	}
	network->has_ended = true;
	ev_timer_stop(network->loop, &network->deadline);
	ev_timer_stop(network->loop, &network->refill);
	soon_stop(&network->lost);
	if (network->control.fd >= 0) {
		io_close(network->loop, &network->control); // it ends by this, whatever it does
	}
	network->listener->on_end(network->data, err);
}

/* ---- what the process says ---- */

static void take_failure(struct network *network, const struct wire_message *message)
{
	struct error err;
	if (message->is_unavailable) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "CELL_UNAVAILABLE", "%s", message->text);
	} else {
		error_set(&err, ERROR_UNAVAILABLE, "%s", message->text);
	}
	raise_end(network, &err);
}

/* The owner may stop the network in each call: nothing is touched after it. */
static void take(struct network *network, const struct wire_message *message)
{
	const struct network_listener *listener = network->listener;
	const struct network_connection connection = wire_connection(message);
	switch (message->kind) {
	case WIRE_READY:
		ev_timer_stop(network->loop, &network->deadline);
		listener->on_ready(network->data);
		break;
	case WIRE_FAILED:
		take_failure(network, message);
		break;
	case WIRE_ASK:
		listener->on_ask(network->data, &connection);
		break;
	case WIRE_GONE:
		listener->on_gone(network->data, message->id);
		break;
	case WIRE_TELL:
		listener->on_tell(network->data, &connection, message->result);
		break;
	case WIRE_SERVER_NAME:
		listener->on_server_name(network->data, message->id, message->name);
		break;
	default:
		listener->on_limit(network->data, message->limit);
		break;
	}
}

static void lose(struct network *network, const char *how)
{
	struct error err;
	error_set(&err, ERROR_UNAVAILABLE, "the process of the cell's network %s", how);
	raise_end(network, &err);
}

/* One message for each event, so that the others of this loop get their turn. */
static void on_control(struct ev_loop *loop, ev_io *io, int events)
{
	struct network *network = CONTAINER_OF(io, struct network, control);
	char bytes[sizeof(struct wire_message) + 1]; // a longer one is seen as such
	struct wire_message message;
	ssize_t size = recv(io->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (size < 0 && io_is_transient(errno)) {
		return;
	}
	if (size <= 0) {
		lose(network, "has ended");
		return;
	}
	if (!wire_read((struct span){bytes, (size_t)size}, &message)) {
		lose(network, "has sent what is no message");
		return;
	}
	if (!ev_is_active(&network->refill)) {
		ev_timer_again(loop, &network->refill);
	}
	if (--network->messages == 0) {
		ev_io_stop(loop, io);
	}
	take(network, &message);
}

static void on_refill(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct network *network = CONTAINER_OF(timer, struct network, refill);
	network->messages += REFILL;
	ev_io_start(loop, &network->control);
	if (network->messages >= MESSAGES_MAX) {
		network->messages = MESSAGES_MAX;
		ev_timer_stop(loop, timer);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct network *network = CONTAINER_OF(timer, struct network, deadline);
	struct error err;
	error_set(&err, ERROR_TIMEOUT,
		"the process of the cell's network was not ready within %d s",
		NETWORK_START_MS / 1000);
	raise_end(network, &err);
}

static void on_lost(struct soon *soon)
{
	lose(CONTAINER_OF(soon, struct network, lost), "does not take what is decided");
}

void network_decide(struct network *network, uint32_t id, bool is_allowed)
{
	const struct wire_verdict verdict = {.id = id, .is_allowed = is_allowed};
	int fd = network->control.fd;
	if (fd >= 0 && send(fd, &verdict, sizeof(verdict), MSG_DONTWAIT | MSG_NOSIGNAL) !=
			       (ssize_t)sizeof(verdict)) {
		soon_start(&network->lost); // it takes each before it asks for many more
	}
}

/* ---- its process ---- */

static void on_started(void *data, pid_t pid)
{
}

static void on_failed(void *data, const struct error *err)
{
	struct error why = *err;
	error_prefix(&why, "starting the network of a cell");
	raise_end(data, &why);
}

static void on_exited(void *data, struct process_status status)
{
	/* What it said last is read first: the control's end tells. */
}

static void on_emptied(void *data)
{
}

static const struct process_listener process_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
};

static bool send_start(int control, const struct network_options *options, struct error *err)
{
	struct wire_start *start = mem_alloc_zero(sizeof(*start));
	start->uid = options->uid;
	start->gid = options->gid;
	start->service_count = (uint32_t)options->service_count;
	start->network_count = (uint32_t)options->network_count;
	for (size_t i = 0; i < options->service_count; i++) {
		start->services[i] = options->services[i];
	}
	for (size_t i = 0; i < options->network_count; i++) {
		start->networks[i] = options->networks[i];
	}
	bool is_sent = wire_send_start(control, start, options->fds);
	int errnum = errno;
	free(start);
	return is_sent || error_set_errno(err, errnum, "starting the network of a cell");
}

static bool start(struct network *network, struct spawner *spawner,
	const struct network_options *options, struct error *err)
{
	static const char *const argv[] = {RELAY_PROGRAM, RELAY_ARGUMENT, NULL};
	static const char *const env[] = {NULL};
	int control[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) {
		int errnum = errno;
		return error_set_errno(
			err, errnum, "starting the network of a cell: making a socket");
	}
	ATTR_CLEANUP(fd_cleanup) int theirs = control[1];
	ev_io_set(&network->control, control[0], EV_READ);
	ev_io_start(network->loop, &network->control);
	const struct process_spec spec = {
		.argv = argv, .env = env, .cwd = "/", .in = theirs, .out = -1, .err = -1};
	if (!send_start(control[0], options, err)) {
		return false;
	}
	network->process = process_start(spawner, &spec, &process_listener, network, err);
	return network->process != NULL;
}

struct network *network_start(struct ev_loop *loop, struct spawner *spawner,
	const struct network_options *options, const struct network_listener *listener, void *data,
	struct error *err)
{
	assert(options->service_count <= PORTS_SERVICES_MAX &&
		options->network_count <= NETWORK_NETWORKS_MAX);
	struct network *network = mem_alloc_zero(sizeof(*network));
	network->loop = loop;
	network->listener = listener;
	network->data = data;
	network->messages = MESSAGES_MAX;
	ev_io_init(&network->control, on_control, -1, EV_READ);
	ev_timer_init(&network->deadline, on_deadline, (double)NETWORK_START_MS / 1000., 0.);
	ev_timer_init(&network->refill, on_refill, 0., (double)REFILL_MS / 1000.);
	soon_init(&network->lost, loop, on_lost);
	if (!start(network, spawner, options, err)) {
		network_stop(network);
		return NULL;
	}
	ev_timer_start(loop, &network->deadline);
	return network;
}

void network_stop(struct network *network)
{
	if (!network) {
		return;
	}
	ev_timer_stop(network->loop, &network->deadline);
	ev_timer_stop(network->loop, &network->refill);
	soon_stop(&network->lost);
	if (network->control.fd >= 0) {
		io_close(network->loop, &network->control);
	}
	process_destroy(network->process);
	free(network);
}
