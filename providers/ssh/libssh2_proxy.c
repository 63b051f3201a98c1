/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/fd.h"
#include "providers/ssh/libssh2_route.h"
#include "providers/ssh/libssh2_secret.h"

/* A connection whose other end is the stdin and stdout of the user's ProxyCommand. */
struct proxy {
	struct route route;
	struct process *process;
	int fd; // -1 once it was handed over
};

static void proxy_close(struct route *route)
{
	struct proxy *proxy = CONTAINER_OF(route, struct proxy, route);
	fd_close(&proxy->fd);
	process_destroy(proxy->process);
	free(proxy);
}

static void on_started(void *data, pid_t pid)
{
	struct proxy *proxy = data;
	int fd = proxy->fd;
	proxy->fd = -1;
	proxy->route.listener->on_reached(proxy->route.data, fd);
}

static void on_failed(void *data, const struct error *failure)
{
	struct proxy *proxy = data;
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "HOST_UNREACHABLE",
		"starting the ProxyCommand of %s: %s", proxy->route.target->alias, failure->text);
	proxy->route.listener->on_failed(proxy->route.data, &err);
}

/* What uses the socket sees its end. */
static void on_exited(void *data, struct process_status status)
{
}

static void on_emptied(void *data)
{
}

static const struct process_listener listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
};

struct route *route_proxy(const struct route *request, struct error *err)
{
	int sockets[2];
	if (!socket_pair(sockets, err)) {
		return NULL;
	}
	struct proxy *proxy = mem_alloc_zero(sizeof(*proxy));
	proxy->route = *request;
	proxy->route.close = proxy_close;
	proxy->fd = sockets[0];
	int fds[3] = {sockets[1], sockets[1], -1};
	/* A program that is nothing but a pipe expects blocking ends. */
	if (fd_set_nonblock(sockets[1], false, err)) {
		proxy->process = shell_start(request->context, request->target->proxy_command, fds,
			&listener, proxy, err);
	}
	fd_close(&sockets[1]);
	if (!proxy->process) {
		error_prefix(err, "starting the ProxyCommand of %s", request->target->alias);
		proxy_close(&proxy->route);
		return NULL;
	}
	return &proxy->route;
}
