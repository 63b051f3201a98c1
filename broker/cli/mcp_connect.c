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
	bool is_shown = fd_write_all(fd, span_of(line), err);
	explicit_bzero(line, sizeof(line));
	return is_shown;
}

/* Input of the client that the broker has not taken yet. */
struct held {
	char bytes[PIECE];
	size_t at, len;
};

/* Copies once. False at the end, or if the client reads no more. */
static bool copy_out(int fd)
{
	char piece[PIECE];
	ssize_t count = read(fd, piece, sizeof(piece));
	if (count < 0 && io_is_transient(errno)) {
		return true;
	}
	return count > 0 && fd_write_all(STDOUT_FILENO, (struct span){piece, (size_t)count}, NULL);
}

/* False at the end of the input. */
static bool take_in(struct held *held)
{
	ssize_t count = read(STDIN_FILENO, held->bytes, sizeof(held->bytes));
	held->at = 0;
	held->len = count > 0 ? (size_t)count : 0;
	return count > 0 || (count < 0 && io_is_transient(errno));
}

/* False if the broker takes no more. */
static bool send_in(int fd, struct held *held)
{
	ssize_t count =
		send(fd, held->bytes + held->at, held->len - held->at, MSG_DONTWAIT | MSG_NOSIGNAL);
	held->at += count > 0 ? (size_t)count : 0;
	return count >= 0 || io_is_transient(errno);
}

/* Ends the last line, which may lack its end, and tells the broker. */
static void put_end(struct held *held)
{
	static const char words[] = "\n" MCP_END_LINE "\n";
	held->at = 0;
	held->len = sizeof(words) - 1;
	memcpy(held->bytes, words, held->len);
}

/*
 * Until the broker closes the connection: after the end of the input, with its last answer. Waiting
 * for room in the socket would block the broker's answers, and a broker whose answers are not read
 * takes nothing.
 */
static void copy_both(int fd)
{
	struct held held = {.len = 0};
	bool has_input = true;
	for (;;) {
		bool holds = held.at < held.len;
		struct pollfd ends[] = {
			{.fd = fd, .events = (short)(POLLIN | (holds ? POLLOUT : 0))},
			{.fd = has_input && !holds ? STDIN_FILENO : -1, .events = POLLIN}};
		if (poll(ends, ARRAY_LENGTH(ends), -1) < 0) {
			if (errno != EINTR) {
				return;
			}
			continue;
		}
		if ((ends[0].revents & ~POLLOUT) != 0 && !copy_out(fd)) {
			return;
		}
		if (ends[0].revents & POLLOUT) {
			if (!send_in(fd, &held)) {
				has_input = false;
				held.at = held.len = 0;
			}
		} else if (ends[1].revents != 0 && !take_in(&held)) {
			has_input = false;
			put_end(&held);
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
