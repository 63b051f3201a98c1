/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_MUX_SOCKET_H
#define PROVIDERS_MUX_SOCKET_H

#include "providers/mux/mux.h"

/*
 * A TCP connection that goes on as two streams: one side of a forwarded connection. The other side
 * has another socket and the other ends of the streams. The end of each direction is passed on
 * alone (half-close). If a socket or a stream breaks, everything breaks, and the peer of each
 * socket sees a reset, not an end.
 *
 * The owner does three things: it calls mux_socket_move when the descriptor is ready for an event
 * of mux_socket_events, and when one of the streams is readable or writable; it calls
 * mux_socket_reset when one of the streams is reset; and after MUX_SOCKET_DONE it calls
 * mux_socket_close. Several events may be wanted at once, or none.
 */
struct mux_socket {
	int fd;                 // owned; non-blocking and connected
	struct mux_stream *in;  // bytes for the socket; NULL: they have ended, and the socket knows
	struct mux_stream *out; // bytes of the socket; NULL: it has ended
	enum mux_pump in_waits, out_waits;
	bool has_read; // a byte, from the descriptor
};

enum mux_socket_state { MUX_SOCKET_GOES_ON, MUX_SOCKET_BROKEN, MUX_SOCKET_DONE };

/* A socket without streams. */
void mux_socket_init(struct mux_socket *self, int fd);

/* Call it once the socket is connected and has both streams. */
void mux_socket_begin(const struct mux_socket *self);

/* (out) After MUX_SOCKET_BROKEN call mux_socket_reset. */
enum mux_socket_state mux_socket_move(struct mux_socket *self) ATTR_NODISCARD;

/* POLLIN, POLLOUT, both or 0. With 0 do not watch the descriptor: nobody would handle the event. */
short mux_socket_events(const struct mux_socket *self);

/* (out) Both close the descriptor and the streams; they may be closed already. */
void mux_socket_close(struct mux_socket *self);
void mux_socket_reset(struct mux_socket *self);

#endif
