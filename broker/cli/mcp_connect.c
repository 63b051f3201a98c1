/* SPDX-License-Identifier: MIT */
#include "broker/cli/mcp_connect.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "broker/agent/mcp_door.h"
#include "broker/cli/stderr_line.h"

enum { PIECE = 64 * 1024 };

static bool set_up(int fd, const char *path, const char *secret, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char line[256];
	if (!path || !secret ||
		!text_whole(address.sun_path, sizeof(address.sun_path), "%s", path) ||
		!text_whole(line, sizeof(line), "\"%s\"\n", secret)) {
		return error_set(err, ERROR_CONFIG,
			"only a broker's agent can start this MCP server (mcp-exec = yes)");
	}
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum,
			"connecting to the broker's MCP server at %s (mcp-exec = yes)", path);
	}
	return fd_write_all(fd, span_of(line), err);
}

/* Copies once. False at the end of `from`, or if `to` takes no more. */
static bool copy(int from, int to)
{
	char piece[PIECE];
	ssize_t count = read(from, piece, sizeof(piece));
	if (count < 0 && io_is_transient(errno)) {
		return true;
	}
	return count > 0 && fd_write_all(to, (struct span){piece, (size_t)count}, NULL);
}

/* Until the broker closes the connection. */
static void copy_both(int fd)
{
	struct pollfd ends[] = {
		{.fd = fd, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
	for (;;) {
		if (poll(ends, ARRAY_LENGTH(ends), -1) < 0 && errno != EINTR) {
			return;
		}
		if (ends[0].revents != 0 && !copy(fd, STDOUT_FILENO)) {
			return;
		}
		if (ends[1].revents != 0 && !copy(STDIN_FILENO, fd)) {
			shutdown(fd, SHUT_WR);
			ends[1].fd = -1;
		}
	}
}

int mcp_connect_main(const char *const *environment)
{
	struct error err;
	signal(SIGPIPE, SIG_IGN);
	ATTR_CLEANUP(fd_cleanup) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		int errnum = errno;
		error_set_errno(&err, errnum, "making a socket");
		stderr_failure(&err);
		return EXIT_FAILURE;
	}
	if (!set_up(fd, environment_get(environment, MCP_SOCKET_VARIABLE),
		    environment_get(environment, MCP_SECRET_VARIABLE), &err)) {
		stderr_failure(&err);
		return EXIT_FAILURE;
	}
	copy_both(fd);
	return EXIT_SUCCESS;
}
