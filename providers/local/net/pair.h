/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_PAIR_H
#define PROVIDERS_LOCAL_NET_PAIR_H

#include <ev.h>

#include "base/attr.h"
#include "providers/local/net/pipe.h"

/*
 * Two connected TCP sockets, and the bytes that we relay between them: `client` has connected to
 * us, and we have connected to `server`. The watchers own their descriptors.
 */
struct pair {
	struct ev_loop *loop;
	ev_io client;
	ev_io server;     // -1 until there is one
	struct pipe up;   // bytes from the client to the server
	struct pipe down; // bytes from the server to the client
};

enum { PAIR_UP = 1, PAIR_DOWN = 2 };

enum pair_state { PAIR_GOES_ON, PAIR_BROKEN, PAIR_DONE };

/*
 * Watches for exactly these events, or for none: an event that nobody handles would wake us again
 * and again.
 */
void pair_watch(struct pair *pair, ev_io *io, int events);

/* Call it once both are connected: from then on TCP notices if one of the machines is gone. */
void pair_begin(const struct pair *pair);

/*
 * Moves as much as it can in these directions without waiting, and watches for the rest. After
 * PAIR_DONE call pair_close, after PAIR_BROKEN pair_reset.
 */
enum pair_state pair_relay(struct pair *pair, int moves) ATTR_NODISCARD;

/* Which directions pair_relay should try after an event of the client, or of the server. */
int pair_client_moves(int events);
int pair_server_moves(int events);

void pair_close(struct pair *pair);

/* Like pair_close, but both peers see an error instead of end of file. */
void pair_reset(struct pair *pair);

#endif
