/* SPDX-License-Identifier: MIT */
#include "providers/local/net/ports.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "providers/local/net/nft.h"

enum { BACKLOG = 128, NAMES_PORT = 53 };

static int open_socket(int type, uint32_t address, uint16_t port)
{
	const struct sockaddr_in name = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof(name)) != 0) {
		fd_close(&fd);
	}
	return fd;
}

/* The socket reports the destination address, because an answer must come from there. */
static int open_names(void)
{
	int on = 1;
	int fd = open_socket(SOCK_DGRAM, INADDR_ANY, NAMES_PORT);
	if (fd >= 0 && setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) != 0) {
		fd_close(&fd);
	}
	return fd;
}

static int open_streams(uint16_t port)
{
	int fd = open_socket(SOCK_STREAM, INADDR_LOOPBACK, port);
	if (fd >= 0 && listen(fd, BACKLOG) != 0) {
		fd_close(&fd);
	}
	return fd;
}

static bool open_all(const uint16_t *services, size_t count, int fds[PORTS_MAX], struct error *err)
{
	struct sockaddr_in name = {.sin_port = 0};
	socklen_t size = sizeof(name);
	fds[PORTS_NAMES] = open_names();
	for (size_t i = 0; i < count; i++) {
		fds[PORTS_SERVICES + i] = open_streams(services[i]);
		if (fds[PORTS_SERVICES + i] < 0) {
			int errnum = errno;
			return error_set_errno(
				err, errnum, "listening on port %u in the cell", services[i]);
		}
	}
	/* Comes after the services, because it takes any free port. */
	fds[PORTS_STREAMS] = open_streams(0);
	if (fds[PORTS_NAMES] < 0 || fds[PORTS_STREAMS] < 0 ||
		getsockname(fds[PORTS_STREAMS], (struct sockaddr *)&name, &size) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making the cell's sockets");
	}
	return nft_redirect(ntohs(name.sin_port), err);
}

bool ports_open(const uint16_t *services, size_t count, int out_fds[PORTS_MAX], struct error *err)
{
	assert(count <= PORTS_SERVICES_MAX);
	for (size_t i = 0; i < PORTS_MAX; i++) {
		out_fds[i] = -1;
	}
	if (nft_add_local_route(err) && nft_add_address(PORTS_GATE_ADDRESS, err) &&
		open_all(services, count, out_fds, err)) {
		return true;
	}
	for (size_t i = 0; i < PORTS_MAX; i++) {
		fd_close(&out_fds[i]);
	}
	return false;
}

bool ports_open_keys(size_t count, int out_fds[PORTS_KEYS_MAX], struct error *err)
{
	bool is_open = true;
	assert(count <= PORTS_KEYS_MAX);
	for (size_t i = 0; i < PORTS_KEYS_MAX; i++) {
		out_fds[i] = is_open && i < count ? open_streams(0) : -1;
		is_open = is_open && (i >= count || out_fds[i] >= 0);
	}
	int errnum = errno;
	for (size_t i = 0; !is_open && i < PORTS_KEYS_MAX; i++) {
		fd_close(&out_fds[i]);
	}
	return is_open || error_set_errno(err, errnum, "listening for programs that use a key");
}

bool ports_are_unknown(int errnum)
{
	return errnum == ENOENT || errnum == EOPNOTSUPP || errnum == EPROTONOSUPPORT;
}
