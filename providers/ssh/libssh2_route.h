/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_ROUTE_H
#define PROVIDERS_SSH_LIBSSH2_ROUTE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/provider.h"
#include "providers/ssh/target.h"

/*
 * The way to a target's SSH server, as a connected stream socket: TCP (libssh2_dial.c), a proxy
 * command (libssh2_proxy.c), or a channel of another connection (libssh2_jump.c).
 *
 * Loop thread; nothing blocks, and route_open raises nothing before it returns.
 */
struct route;

struct route_listener {
	void (*on_progress)(void *data, const char *text);
	/*
	 * The callee takes over the socket, which is non-blocking and CLOEXEC. The route must stay
	 * as long as the socket is used.
	 */
	void (*on_reached)(void *data, int fd);
	/*
	 * HOST_NOT_FOUND, HOST_UNREACHABLE, TIMEOUT_EXCEEDED, or the error of an earlier jump host.
	 */
	void (*on_failed)(void *data, const struct error *err);
};

/* The target is borrowed until the route is closed. connect_timeout_ms bounds the whole way. */
struct route *route_open(const struct provider_context *context, const struct ssh_target *target,
	const struct route_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* Ends the way and raises nothing more; a handler may call it. NULL is fine. */
void route_close(struct route *route);

/* Adds to a connection's error the last words of the program on the way. */
void route_add_words(struct route *route, struct error *err);

/* ---- for the files that make a route ---- */

enum { ROUTE_WORDS_MAX = 512 };

struct route {
	void (*close)(struct route *route);
	/*
	 * The last words of the way's program: printable, may be empty. NULL: there is no program.
	 */
	struct span (*words)(struct route *route);
	const struct provider_context *context;
	const struct ssh_target *target;
	const struct route_listener *listener;
	void *data;
};

struct route *route_dial(const struct route *request, struct error *err);
struct route *route_proxy(const struct route *request, struct error *err);
struct route *route_jump(const struct route *request, struct error *err);

/* Makes a pair of connected stream sockets, non-blocking and CLOEXEC. */
bool socket_pair(int out_fds[2], struct error *err) ATTR_NODISCARD;

#endif
