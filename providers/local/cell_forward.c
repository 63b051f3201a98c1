/* SPDX-License-Identifier: MIT */
#include "providers/local/cell_forward.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/text.h"
#include "providers/local/copy_cell.h"
#include "providers/local/helper.h"
#include "providers/local/net/forward.h"

enum { BACKLOG = 128, NOTICE_SIZE = 256 };

static_assert((int)FORWARDS_MAX == (int)CELL_FORWARDS_MAX, "the cell's plan has all of them");

const struct error_reason cell_forward_reason = {"FORWARD_TAKEN", true,
	"end the program that has the port, or forward another port of this machine"};

static const struct helper_kind kind = {.argument = FORWARD_ARGUMENT,
	.name = "the process that forwards ports",
	.packet_size = sizeof(struct forward_message)};

struct cell_forward {
	struct helper *helper;
	void (*on_ready)(void *data);
	void *data;
	const struct sandbox_listener *listener;
	void *listener_data;
	bool is_ready;
};

/* ---- the profile ---- */

bool cell_forward_check(const struct settings *settings, struct error *err)
{
	struct forward_port ports[FORWARDS_MAX];
	size_t count = 0;
	if (forward_ports_are_wanted(settings) && copy_confinement(settings) == CONFINEMENT_NO) {
		return error_set(err, ERROR_CONFIG,
			"forward leads into a cell: confine = required in the profile makes one. "
			"Without a cell the agent's ports are this machine's already");
	}
	if (forward_ports_are_wanted(settings) && copy_cell_has_network(settings)) {
		return error_set(err, ERROR_CONFIG,
			"forward does not work with network = open: the agent's ports are this "
			"machine's already. Remove forward, or set network to blocked, allow or "
			"ask");
	}
	return forward_ports_read(settings, ports, &count, err);
}

void cell_forward_plan(const struct settings *settings, struct cell_plan *plan)
{
	struct forward_port ports[FORWARDS_MAX];
	size_t count = 0;
	struct error err;
	if (forward_ports_read(settings, ports, &count, &err)) { // it was checked
		plan->forward_count = count;
		for (size_t i = 0; i < count; i++) {
			plan->forwards[i] = ports[i].inside;
		}
	}
}

/* ---- messages of the process ---- */

static void tell(const struct cell_forward *self, const char *text)
{
	if (self->listener->on_notice) {
		self->listener->on_notice(self->listener_data, text);
	}
}

static void tell_full(const struct cell_forward *self)
{
	char text[NOTICE_SIZE];
	text_format(text, sizeof(text),
		"forward: %d connections are open; more are refused until some of them end",
		(int)FORWARD_CONNECTIONS_MAX);
	tell(self, text);
}

/* The owner may destroy everything in each callback. */
static bool on_packet(void *data, struct span packet)
{
	struct cell_forward *self = data;
	struct forward_message message;
	if (!forward_read(packet, &message)) {
		return false;
	}
	if (message.kind == FORWARD_FAILED) {
		helper_fail(self->helper, message.text, message.is_unavailable);
	} else if (message.kind == FORWARD_FULL) {
		tell_full(self);
	} else if (!self->is_ready) {
		self->is_ready = true;
		helper_is_ready(self->helper);
		self->on_ready(self->data);
	}
	return true;
}

static void on_end(void *data, const struct error *err)
{
	const struct cell_forward *self = data;
	char text[ERROR_TEXT_MAX + 256];
	if (!self->is_ready) {
		self->listener->on_failed(self->listener_data, err);
		return;
	}
	text_format(text, sizeof(text),
		"forward: the process that forwards ports has ended (%s). From now on every "
		"connection to them is refused. Restart the agent in the editor",
		err->text);
	tell(self, text);
}

static const struct helper_listener helper_listener = {.on_packet = on_packet, .on_end = on_end};

/* ---- listening here ---- */

static bool refuse_port(uint16_t port, const char *where, int errnum, struct error *err)
{
	if (errnum == EADDRINUSE) {
		return error_set_reason(err, ERROR_UNAVAILABLE, cell_forward_reason.name,
			"forward: port %u of %s is used by another program. End it, or write "
			"forward = OTHER:PORT with a free port of this machine",
			port, where);
	}
	return error_set_errno(err, errnum, "forward: listening on port %u of %s", port, where);
}

static bool bind_and_listen(int fd, const void *name, socklen_t size)
{
	const int on = 1;
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	       bind(fd, name, size) == 0 && listen(fd, BACKLOG) == 0;
}

static bool listen_ip4(uint16_t port, int *out_fd, struct error *err)
{
	const struct sockaddr_in name = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	*out_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*out_fd < 0 || !bind_and_listen(*out_fd, &name, sizeof(name))) {
		int errnum = errno;
		fd_close(out_fd);
		return refuse_port(port, "127.0.0.1", errnum, err);
	}
	return true;
}

/* Browsers try ::1 for "localhost". *out_fd is -1 on a machine without IPv6. */
static bool listen_ip6(uint16_t port, int *out_fd, struct error *err)
{
	const int on = 1;
	const struct sockaddr_in6 name = {.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	*out_fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*out_fd >= 0 && setsockopt(*out_fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0 &&
		bind_and_listen(*out_fd, &name, sizeof(name))) {
		return true;
	}
	int errnum = errno;
	fd_close(out_fd);
	return errnum == EAFNOSUPPORT || errnum == EADDRNOTAVAIL ||
	       refuse_port(port, "::1", errnum, err);
}

static bool listen_here(const struct forward_port *ports, size_t count, int *fds,
	struct forward_start *start, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		int fd = -1;
		if (!listen_ip4(ports[i].here, &fds[start->count], err)) {
			return false;
		}
		start->inside[start->count++] = ports[i].inside;
		if (!listen_ip6(ports[i].here, &fd, err)) {
			return false;
		}
		if (fd >= 0) {
			fds[start->count] = fd;
			start->inside[start->count++] = ports[i].inside;
		}
	}
	return true;
}

/* ---- the start ---- */

static bool send_start(const struct helper *helper, const struct forward_start *start,
	const int *fds, struct error *err)
{
	struct span span = {(const char *)start, sizeof(*start)};
	if (!fd_pass(helper_channel(helper), span, fds, 1 + start->count)) {
		int errnum = errno;
		return error_set_errno(err, errnum, "starting the process that forwards ports");
	}
	return true;
}

static bool begin(struct cell_forward *self, const struct cell_network_config *config, int *fds,
	struct error *err)
{
	struct forward_port ports[FORWARDS_MAX];
	size_t count = 0;
	struct forward_start start = {.count = 0};
	cell_user(config->cell, &start.uid, &start.gid);
	fds[0] = cell_take_connector(config->cell);
	return forward_ports_read(config->settings, ports, &count, err) &&
	       listen_here(ports, count, fds + 1, &start, err) &&
	       (self->helper = helper_create(
			config->context->loop, &kind, &helper_listener, self, err)) &&
	       send_start(self->helper, &start, fds, err) &&
	       helper_start(self->helper, config->context->spawner, err);
}

struct cell_forward *cell_forward_start(const struct cell_network_config *config, struct error *err)
{
	int fds[FORWARD_FDS_MAX];
	struct cell_forward *self = mem_alloc_zero(sizeof(*self));
	self->on_ready = config->on_ready;
	self->data = config->data;
	self->listener = config->listener;
	self->listener_data = config->listener_data;
	for (size_t i = 0; i < FORWARD_FDS_MAX; i++) {
		fds[i] = -1;
	}
	bool is_started = begin(self, config, fds, err);
	for (size_t i = 0; i < FORWARD_FDS_MAX; i++) {
		fd_close(&fds[i]);
	}
	if (!is_started) {
		cell_forward_stop(self);
		return NULL;
	}
	return self;
}

void cell_forward_stop(struct cell_forward *self)
{
	if (self) {
		helper_destroy(self->helper);
		free(self);
	}
}
