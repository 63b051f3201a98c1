/* SPDX-License-Identifier: MIT */
#include "sync/rsync/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"

enum { STATUS_LOST = 255, WAY_SIZE = 128 << 10, COUNT_EVERY_MS = 500 };

/* Copies bytes in one direction; both file descriptors are non-blocking. */
struct way {
	int from, to; // -1: closed
	size_t at, len;
	uint64_t count;
	char data[WAY_SIZE];
};

struct shell {
	int broker;
	struct way out, in; // to and from the sandbox
	uint64_t received_max;
	struct rsync_shell_count told;
	long long told_ms;
	int32_t status;
	bool has_status;
};

static const char *find_token(const char *const *environment)
{
	size_t length = strlen(RSYNC_SHELL_TOKEN);
	for (; *environment; environment++) {
		if (strncmp(*environment, RSYNC_SHELL_TOKEN, length) == 0 &&
			(*environment)[length] == '=') {
			return *environment + length + 1;
		}
	}
	return NULL;
}

static int complain(const char *what)
{
	fprintf(stderr, "acp-broker: " RSYNC_SHELL_WORD ": %s\n", what);
	return STATUS_LOST;
}

/* ---- asking the broker ---- */

static int connect_broker(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = RSYNC_SHELL_SOCKET};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		fd_close(&fd);
	}
	return fd;
}

static bool add_word(char *request, size_t *length, const char *word)
{
	size_t size = strlen(word) + 1;
	if (*length + size > RSYNC_SHELL_REQUEST_MAX) {
		return false;
	}
	memcpy(request + *length, word, size);
	*length += size;
	return true;
}

static bool send_request(int fd, const char *token, char *const *words)
{
	static char request[RSYNC_SHELL_REQUEST_MAX];
	size_t length = 0;
	bool fits = add_word(request, &length, token);
	for (; fits && *words; words++) {
		fits = add_word(request, &length, *words);
	}
	return fits && send(fd, request, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool receive_go(struct shell *shell)
{
	struct rsync_shell_go go;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec bytes = {&go, sizeof(go)};
	struct msghdr message = {.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t count;
	do {
		count = recvmsg(shell->broker, &message, MSG_CMSG_CLOEXEC);
	} while (count < 0 && errno == EINTR);
	const struct cmsghdr *header = count == sizeof(go) ? CMSG_FIRSTHDR(&message) : NULL;
	if (!header || header->cmsg_type != SCM_RIGHTS ||
		header->cmsg_len != CMSG_LEN(2 * sizeof(int))) {
		return false;
	}
	int fds[2];
	memcpy(fds, CMSG_DATA(header), sizeof(fds));
	shell->out.to = fds[0];
	shell->in.from = fds[1];
	shell->received_max = go.received_max;
	return true;
}

/* ---- carrying ---- */

static bool way_is_open(const struct way *way)
{
	return way->to >= 0;
}

static void way_close(struct way *way)
{
	fd_close(&way->from);
	fd_close(&way->to);
	way->len = 0;
}

static void way_read(struct way *way)
{
	ssize_t count = read(way->from, way->data, WAY_SIZE);
	if (count > 0) {
		way->at = 0;
		way->len = (size_t)count;
		way->count += (uint64_t)count;
	} else if (count == 0 || !io_is_transient(errno)) {
		way_close(way);
	}
}

static void way_write(struct way *way)
{
	ssize_t count = write(way->to, way->data + way->at, way->len);
	if (count > 0) {
		way->at += (size_t)count;
		way->len -= (size_t)count;
	} else if (count < 0 && !io_is_transient(errno)) {
		way_close(way); // nobody reads any more
	}
}

static struct pollfd way_wait(const struct way *way)
{
	bool writes = way->len > 0;
	return (struct pollfd){
		.fd = writes ? way->to : way->from, .events = writes ? POLLOUT : POLLIN};
}

static void way_step(struct way *way, const struct pollfd *ready)
{
	if (ready->revents && way_is_open(way)) {
		if (way->len > 0) {
			way_write(way);
		} else {
			way_read(way);
		}
	}
}

/* ---- the end ---- */

static bool hear(struct shell *shell)
{
	ssize_t count = recv(shell->broker, &shell->status, sizeof(shell->status), MSG_DONTWAIT);
	if (count < 0 && io_is_transient(errno)) {
		return true;
	}
	shell->has_status = count == sizeof(shell->status);
	return shell->has_status;
}

static void tell(struct shell *shell, bool is_last)
{
	struct rsync_shell_count count = {shell->out.count, shell->in.count};
	long long now = clock_now_ms();
	bool is_new = count.sent != shell->told.sent || count.received != shell->told.received;
	if (is_new && (is_last || now - shell->told_ms >= COUNT_EVERY_MS)) {
		send(shell->broker, &count, sizeof(count), MSG_NOSIGNAL);
		shell->told = count;
		shell->told_ms = now;
	}
}

/* Copies until everything has come from the sandbox and the command's status is known. */
static int carry(struct shell *shell)
{
	while (!shell->has_status || way_is_open(&shell->in)) {
		struct pollfd ready[] = {way_wait(&shell->out), way_wait(&shell->in),
			{.fd = shell->has_status ? -1 : shell->broker, .events = POLLIN}};
		if (poll(ready, 3, COUNT_EVERY_MS) < 0 && errno != EINTR) {
			return complain("waiting failed");
		}
		way_step(&shell->out, &ready[0]);
		way_step(&shell->in, &ready[1]);
		tell(shell, !way_is_open(&shell->in));
		if (shell->in.count > shell->received_max) {
			return complain("the sandbox sent more than is allowed (max-size)");
		}
		if (ready[2].revents && !hear(shell)) {
			return complain("the broker has ended");
		}
	}
	return shell->status;
}

int rsync_shell_main(int argc, char **argv, const char *const *environment)
{
	static struct shell shell;
	struct error err;
	const char *token = find_token(environment);
	if (argc < 4 || !token) {
		return complain("only the broker may use this");
	}
	signal(SIGPIPE, SIG_IGN);
	shell.broker = connect_broker();
	if (shell.broker < 0) {
		return complain("the broker cannot be reached");
	}
	shell.out.from = STDIN_FILENO;
	shell.in.to = STDOUT_FILENO;
	if (!send_request(shell.broker, token, argv + 3) || !receive_go(&shell)) {
		return complain("the broker refused");
	}
	if (!fd_set_nonblock(shell.out.from, true, &err) ||
		!fd_set_nonblock(shell.in.to, true, &err) ||
		!fd_set_nonblock(shell.out.to, true, &err) ||
		!fd_set_nonblock(shell.in.from, true, &err)) {
		return complain(err.text);
	}
	return carry(&shell);
}
