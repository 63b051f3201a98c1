/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/connector.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/io.h"

enum { TURN_MAX = 16 }; // requests that are answered before the cell's other work

bool connector_open(int out_ends[2], struct error *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, out_ends) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making a socket for forwarded ports");
	}
	return true;
}

/* ---- outside ---- */

bool connector_ask(int fd, const struct connector_request *request)
{
	return send(fd, request, sizeof(*request), MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (ssize_t)sizeof(*request);
}

int connector_take(int fd, struct connector_answer *out, int *out_socket)
{
	size_t count = 0;
	*out_socket = -1;
	ssize_t size = fd_take(fd, out, sizeof(*out), out_socket, 1, &count);
	if (size < 0 && io_is_transient(errno)) {
		return 0;
	}
	if (size != (ssize_t)sizeof(*out) || (count == 1) != (out->errnum == 0)) {
		fd_close(out_socket);
		return -1;
	}
	return 1;
}

/* ---- in the cell ---- */

static bool is_named(uint16_t port, const uint16_t *ports, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ports[i] == port) {
			return true;
		}
	}
	return false;
}

/* Returns the socket, or -1 with errno. */
static int connect_inside(const struct connector_request *request)
{
	const struct sockaddr_in four = {.sin_family = AF_INET,
		.sin_port = htons(request->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 six = {.sin6_family = AF_INET6,
		.sin6_port = htons(request->port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool has_ip6 = request->has_ip6 != 0;
	const struct sockaddr *name =
		has_ip6 ? (const struct sockaddr *)&six : (const struct sockaddr *)&four;
	int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	if (fd >= 0 && connect(fd, name, has_ip6 ? sizeof(six) : sizeof(four)) != 0 &&
		errno != EINPROGRESS) {
		int errnum = errno;
		fd_close(&fd);
		errno = errnum;
	}
	return fd;
}

/* The asking process never has more open requests than its socket has room for answers. */
static void answer(int fd, const struct connector_request *request, int errnum, int socket)
{
	const struct connector_answer answer = {.id = request->id, .errnum = errnum};
	struct span span = {(const char *)&answer, sizeof(answer)};
	if (socket >= 0) {
		(void)!fd_pass(fd, span, &socket, 1);
	} else {
		(void)!send(fd, span.data, span.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

bool connector_serve(int fd, const uint16_t *ports, size_t count)
{
	for (int i = 0; i < TURN_MAX; i++) {
		struct connector_request request;
		ssize_t size = recv(fd, &request, sizeof(request), MSG_DONTWAIT);
		if (size < 0 && io_is_transient(errno)) {
			return true;
		}
		if (size != (ssize_t)sizeof(request)) {
			return false;
		}
		errno = EACCES;
		ATTR_CLEANUP(fd_cleanup)
		int socket = is_named(request.port, ports, count) ? connect_inside(&request) : -1;
		answer(fd, &request, socket < 0 ? errno : 0, socket);
	}
	return true;
}
