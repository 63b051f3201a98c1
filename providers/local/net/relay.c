/* SPDX-License-Identifier: MIT */
#include "providers/local/net/relay.h"

#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/guard.h"
#include "base/io.h"
#include "base/text.h"
#include "providers/local/net/confinement.h"
#include "providers/local/net/dns.h"
#include "providers/local/net/flow.h"
#include "providers/local/net/lookup.h"
#include "providers/local/net/ports.h"
#include "providers/local/net/wire.h"

/* The number of its descriptor. */
enum { AT_CONTROL = 0 };

enum {
	TURN_MAX = 32, // packets or connections to handle before others get their turn
	OUT_MAX = FLOW_MESSAGES_MAX * (NETWORK_CONNECTIONS_MAX + TURN_MAX) + 8,
	SEND_BYTES = 512 << 10, // size of a socket's buffer, as far as the machine allows it
	PAUSE_MS = 100,
};

struct relay {
	struct ev_loop *loop;
	struct wire_start start;
	int fds[PORTS_MAX];
	struct host_names *names;
	struct flows *flows;
	bool is_serving; // wire_start has come
	ev_io control;
	ev_io out; // the control socket, while messages wait
	ev_io lookup;
	ev_io questions;
	ev_io ports[PORTS_MAX]; // PORTS_STREAMS and later ones
	ev_timer pause;         // while it runs, no connection is accepted
	bool was_full_of_names; // the limit was reported to the broker
	/* Messages that the broker has not read yet; a ring that begins at `first`. */
	struct wire_message messages[OUT_MAX];
	size_t first;
	size_t count;
};

/* ---- to the broker ---- */

static void watch_ports(struct relay *relay)
{
	bool is_open = relay->count == 0 && !ev_is_active(&relay->pause);
	for (size_t i = PORTS_STREAMS; i < PORTS_SERVICES + relay->start.service_count; i++) {
		if (is_open) {
			ev_io_start(relay->loop, &relay->ports[i]);
		} else {
			ev_io_stop(relay->loop, &relay->ports[i]);
		}
	}
}

/* While messages wait, no connection is accepted, so that the ring cannot overflow. */
static void flush(struct relay *relay)
{
	while (relay->count > 0) {
		const struct wire_message *message = &relay->messages[relay->first];
		ssize_t size =
			send(AT_CONTROL, message, sizeof(*message), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (size < 0 && io_is_transient(errno)) {
			break;
		}
		if (size < 0) {
			_exit(0); // the broker has ended
		}
		relay->first = (relay->first + 1) % OUT_MAX;
		relay->count--;
	}
	if (relay->count > 0) {
		ev_io_start(relay->loop, &relay->out);
	} else {
		ev_io_stop(relay->loop, &relay->out);
	}
	watch_ports(relay);
}

static void on_message(void *data, const struct wire_message *message)
{
	struct relay *relay = data;
	assert(relay->count < OUT_MAX);
	relay->messages[(relay->first + relay->count) % OUT_MAX] = *message;
	relay->count++;
	flush(relay);
}

static void on_out(struct ev_loop *loop, ev_io *io, int events)
{
	flush(CONTAINER_OF(io, struct relay, out));
}

/* ---- from the broker ---- */

static void serve(struct relay *relay);

static void on_control(struct ev_loop *loop, ev_io *io, int events)
{
	struct relay *relay = CONTAINER_OF(io, struct relay, control);
	if (!relay->is_serving) {
		serve(relay);
		return;
	}
	for (int i = 0; i < TURN_MAX; i++) {
		struct wire_verdict verdict;
		ssize_t size = recv(AT_CONTROL, &verdict, sizeof(verdict), MSG_DONTWAIT);
		if (size < 0 && io_is_transient(errno)) {
			return;
		}
		if (size != (ssize_t)sizeof(verdict)) {
			_exit(0); // the broker has ended or destroyed the network
		}
		flows_decide(relay->flows, verdict.id, verdict.is_allowed != 0);
	}
}

/* ---- addresses of names ---- */

static bool on_lookup(void *data, const struct lookup_request *request)
{
	struct relay *relay = data;
	size_t size = lookup_request_size(request);
	return send(relay->lookup.fd, request, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

static void end_with(const struct error *err) ATTR_NORETURN;

static void on_found(struct ev_loop *loop, ev_io *io, int events)
{
	struct relay *relay = CONTAINER_OF(io, struct relay, lookup);
	struct lookup_answer packet, answer;
	struct error err;
	ssize_t size = recv(io->fd, &packet, sizeof(packet), MSG_DONTWAIT);
	if (size < 0 && io_is_transient(errno)) {
		return;
	}
	struct span span = {(const char *)&packet, size > 0 ? (size_t)size : 0};
	if (!lookup_read(span, &answer)) {
		error_set(&err, ERROR_UNAVAILABLE, "the process that looks up names has ended");
		end_with(&err);
	}
	flows_found(relay->flows, &answer);
}

static const struct flows_listener flows_listener = {
	.on_message = on_message, .on_lookup = on_lookup};

/* ---- the cell's questions ---- */

static void tell_full_of_names(struct relay *relay)
{
	const struct wire_message message = {.kind = WIRE_LIMIT, .limit = NETWORK_LIMIT_NAMES};
	if (!relay->was_full_of_names) {
		relay->was_full_of_names = true;
		on_message(relay, &message);
	}
}

/* RFC 6761, section 6.3. */
static bool is_localhost(const char *name)
{
	struct span span = span_of(name);
	return span_is(span, "localhost") || span_ends_with(span, SPAN_LITERAL(".localhost"));
}

/* Returns 0 if there is no answer. */
static size_t answer_question(
	struct relay *relay, struct span message, unsigned char out[DNS_MESSAGE_MAX])
{
	struct dns_question question;
	uint32_t address = 0;
	enum dns_code code = dns_read(message, &question);
	if (code == DNS_DONE && question.wants_address) {
		address = is_localhost(question.name)
		                  ? INADDR_LOOPBACK
		                  : host_names_give(relay->names, question.name);
		if (address == 0) {
			tell_full_of_names(relay);
			code = DNS_FAILED;
		}
	}
	return code == DNS_SILENT ? 0 : dns_write(message, &question, code, address, out);
}

/* The answer must come from the address that was asked. */
static void answer_from(const struct msghdr *asked, int fd, struct span answer)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} space = {0};
	struct iovec part = {.iov_base = (char *)answer.data, .iov_len = answer.len};
	struct msghdr message = {.msg_name = asked->msg_name,
		.msg_namelen = asked->msg_namelen,
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &space,
		.msg_controllen = sizeof(space)};
	const struct cmsghdr *from = CMSG_FIRSTHDR(asked);
	struct in_pktinfo info;
	if (!from || from->cmsg_level != IPPROTO_IP || from->cmsg_type != IP_PKTINFO) {
		return;
	}
	memcpy(&info, CMSG_DATA(from), sizeof(info));
	info = (struct in_pktinfo){.ipi_spec_dst = info.ipi_addr};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = IPPROTO_IP;
	head->cmsg_type = IP_PKTINFO;
	head->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(head), &info, sizeof(info));
	(void)!sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void on_questions(struct ev_loop *loop, ev_io *io, int events)
{
	struct relay *relay = CONTAINER_OF(io, struct relay, questions);
	for (int i = 0; i < TURN_MAX; i++) {
		union {
			struct cmsghdr header;
			char space[CMSG_SPACE(sizeof(struct in_pktinfo))];
		} space;
		char bytes[DNS_MESSAGE_MAX + 1]; // one more byte shows that a message is too long
		unsigned char out[DNS_MESSAGE_MAX];
		struct sockaddr_in name;
		struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
		struct msghdr message = {.msg_name = &name,
			.msg_namelen = sizeof(name),
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = &space,
			.msg_controllen = sizeof(space)};
		ssize_t size = recvmsg(io->fd, &message, MSG_DONTWAIT);
		if (size < 0) {
			return;
		}
		size_t answer = answer_question(relay, (struct span){bytes, (size_t)size}, out);
		if (answer > 0) {
			answer_from(&message, io->fd, (struct span){(const char *)out, answer});
		}
	}
}

/* ---- the cell's connections ---- */

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
	watch_ports(CONTAINER_OF(timer, struct relay, pause));
}

/* Accepts one connection at a time while the broker is slow. */
static void on_port(struct ev_loop *loop, ev_io *io, int events)
{
	struct relay *relay = io->data;
	size_t port = (size_t)(io - relay->ports);
	for (int i = 0; i < TURN_MAX && relay->count == 0; i++) {
		int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
			ev_timer_set(&relay->pause, (double)PAUSE_MS / 1000., 0.);
			ev_timer_start(relay->loop, &relay->pause);
			watch_ports(relay);
		}
		if (fd < 0) {
			return;
		}
		if (port == PORTS_STREAMS) {
			flows_add(relay->flows, fd);
		} else {
			flows_add_service(
				relay->flows, fd, relay->start.services[port - PORTS_SERVICES]);
		}
	}
}

/* ---- the start ---- */

static void say(const struct wire_message *message)
{
	while (send(AT_CONTROL, message, sizeof(*message), MSG_NOSIGNAL) < 0 && errno == EINTR) {
	}
}

static void end_with(const struct error *err)
{
	struct wire_message message = {
		.kind = WIRE_FAILED, .is_unavailable = error_has_reason(err, "CELL_UNAVAILABLE")};
	helper_put_text(message.text, sizeof(message.text), err);
	say(&message);
	_exit(1);
}

/* What the broker sends when the cell is ready. The process is confined already. */
static void serve(struct relay *relay)
{
	const struct wire_message ready = {.kind = WIRE_READY};
	if (!wire_take_start(AT_CONTROL, &relay->start, relay->fds)) {
		_exit(0); // the broker has ended or destroyed the network
	}
	relay->is_serving = true;
	relay->names = host_names_create();
	relay->flows =
		flows_create(relay->loop, relay->names, &relay->start, &flows_listener, relay);
	ev_io_init(&relay->questions, on_questions, relay->fds[PORTS_NAMES], EV_READ);
	ev_io_start(relay->loop, &relay->questions);
	for (size_t i = PORTS_STREAMS; i < PORTS_SERVICES + relay->start.service_count; i++) {
		ev_io_init(&relay->ports[i], on_port, relay->fds[i], EV_READ);
		relay->ports[i].data = relay;
	}
	on_message(relay, &ready);
}

static void watch(struct relay *relay, int lookup)
{
	ev_io_init(&relay->control, on_control, AT_CONTROL, EV_READ);
	ev_io_init(&relay->out, on_out, AT_CONTROL, EV_WRITE);
	ev_io_init(&relay->lookup, on_found, lookup, EV_READ);
	ev_timer_init(&relay->pause, on_pause, 0., 0.);
	ev_io_start(relay->loop, &relay->control);
	ev_io_start(relay->loop, &relay->lookup);
}

static bool set_up(struct relay *relay, const struct wire_user *user, struct error *err)
{
	const int size = SEND_BYTES;
	if (!confinement_become(user->uid, user->gid, err) || !confinement_prepare(err)) {
		return false;
	}
	setsockopt(AT_CONTROL, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	int lookup = lookup_start(NULL, 0, err);
	if (lookup < 0) {
		return false;
	}
	relay->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	if (!relay->loop) {
		return error_set(err, ERROR_SYSTEM, "making an event loop");
	}
	watch(relay, lookup);
	return confinement_apply(CONFINEMENT_RELAY, err);
}

/* ---- main ---- */

bool relay_is_asked(int argc, char *const *argv)
{
	return argc == 2 && strcmp(argv[1], RELAY_ARGUMENT) == 0;
}

void relay_run(void)
{
	struct relay *relay = mem_alloc_zero(sizeof(*relay)); // until this process ends
	struct wire_user user;
	struct error err;
	struct stat status;
	prctl(PR_SET_NAME, GUARD_NAME);
	if (fstat(AT_CONTROL, &status) != 0 || !S_ISSOCK(status.st_mode) ||
		recv(AT_CONTROL, &user, sizeof(user), 0) != (ssize_t)sizeof(user)) {
		_exit(1); // not started by the broker, or the broker has ended
	}
	if (!set_up(relay, &user, &err)) {
		error_prefix(&err, "starting the network of a cell");
		end_with(&err);
	}
	ev_run(relay->loop, 0);
	_exit(0);
}
