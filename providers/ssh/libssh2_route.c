/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_route.h"

#include <errno.h>
#include <sys/socket.h>

bool socket_pair(int out_fds[2], struct error *err)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, out_fds) != 0) {
		return error_set_errno(err, errno, "making a pair of sockets");
	}
	return true;
}

struct route *route_open(const struct provider_context *context, const struct ssh_target *target,
	const struct route_listener *listener, void *data, struct error *err)
{
	struct route request = {
		.context = context, .target = target, .listener = listener, .data = data};
	if (target->proxy_command) {
		return route_proxy(&request, err);
	}
	return target->via ? route_jump(&request, err) : route_dial(&request, err);
}

void route_add_words(struct route *route, struct error *err)
{
	struct span words = route && route->words ? route->words(route) : (struct span){"", 0};
	if (words.len > 0) {
		error_set_reason(err, err->code, err->reason,
			"%s (output of the ProxyCommand: %.*s)", err->text, (int)words.len,
			words.data);
	}
}

void route_close(struct route *route)
{
	if (route) {
		route->close(route);
	}
}
