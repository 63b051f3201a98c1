/* SPDX-License-Identifier: MIT */
#include "providers/local/cell_forward.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/text.h"
#include "providers/local/copy_cell.h"
#include "providers/local/helper.h"
#include "providers/local/net/forward.h"

enum { NOTICE_SIZE = 256 };

static_assert((int)FORWARDS_MAX == (int)CELL_FORWARDS_MAX, "the cell's plan has all of them");

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
	return forward_ports_read(settings, ports, &count, err) &&
	       forward_ports_check_services(settings, ports, count, err);
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

/* ---- the start ---- */

static bool listen_here(const struct forward_port *ports, size_t count, int *fds,
	struct forward_start *start, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		uint16_t here = ports[i].here;
		int both[FORWARD_ADDRESSES];
		if (!forward_port_listen(&here, both, err)) {
			return false;
		}
		for (int j = 0; j < FORWARD_ADDRESSES && both[j] >= 0; j++) {
			fds[start->count] = both[j];
			start->inside[start->count++] = ports[i].inside;
		}
	}
	return true;
}

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
