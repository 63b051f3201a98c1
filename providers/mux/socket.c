/* SPDX-License-Identifier: MIT */
#include "providers/mux/socket.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/tcp.h"

void mux_socket_init(struct mux_socket *self, int fd)
{
	*self = (struct mux_socket){.fd = fd};
}

void mux_socket_begin(const struct mux_socket *self)
{
	tcp_keep_alive(self->fd);
}

static void move_in(struct mux_socket *self)
{
	self->in_waits = mux_pump_in(self->in, self->fd);
	if (self->in_waits == MUX_PUMP_OVER) {
		shutdown(self->fd, SHUT_WR);
		mux_stream_close(self->in);
		self->in = NULL;
	}
}

static void move_out(struct mux_socket *self)
{
	self->out_waits = mux_pump_out(self->out, self->fd, &self->has_read);
	if (self->out_waits == MUX_PUMP_OVER) {
		self->out = NULL; // the link owns it from now on
	}
}

enum mux_socket_state mux_socket_move(struct mux_socket *self)
{
	if (self->in) {
		move_in(self);
	}
	if (self->out && self->in_waits != MUX_PUMP_BROKEN) {
		move_out(self);
	}
	if (self->in_waits == MUX_PUMP_BROKEN || self->out_waits == MUX_PUMP_BROKEN) {
		return MUX_SOCKET_BROKEN;
	}
	return self->in || self->out ? MUX_SOCKET_GOES_ON : MUX_SOCKET_DONE;
}

short mux_socket_events(const struct mux_socket *self)
{
	bool reads = self->out && self->out_waits == MUX_PUMP_FD;
	bool writes = self->in && self->in_waits == MUX_PUMP_FD;
	return (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

void mux_socket_close(struct mux_socket *self)
{
	mux_stream_close(self->in);
	mux_stream_close(self->out);
	self->in = self->out = NULL;
	fd_close(&self->fd);
}

void mux_socket_reset(struct mux_socket *self)
{
	if (self->fd >= 0) {
		tcp_make_abrupt(self->fd);
	}
	mux_socket_close(self);
}
