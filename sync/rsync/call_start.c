/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/rsync/call_impl.h"

enum { WORDS_MAX = 256, BACKLOG = 4 };

static bool make_token(struct call *call, struct error *err)
{
	unsigned char bytes[RSYNC_SHELL_TOKEN_LENGTH / 2];
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
		return error_set_errno(err, errno, "making a token");
	}
	hex_write(call->token, bytes, sizeof(bytes));
	return true;
}

/* ---- the other half ---- */

static void send_status(struct call *call, int32_t status)
{
	if (call->shell.fd >= 0) {
		send(call->shell.fd, &status, sizeof(status), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

static void exec_failed(void *data, const struct error *err)
{
	call_fail(data, err);
}

static void exec_exited(void *data, struct process_status status)
{
	send_status(data, status.signal ? 128 + status.signal : status.code);
}

static const struct exec_listener exec_listener = {
	.on_failed = exec_failed,
	.on_exited = exec_exited,
	.on_lost = exec_failed,
};

static bool send_go(struct call *call, int in, int out)
{
	struct rsync_shell_go go = {call->received_max};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec bytes = {&go, sizeof(go)};
	struct msghdr message = {.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fds[] = {in, out};
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(header), fds, sizeof(fds));
	return sendmsg(call->shell.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(go);
}

/* Puts the words of `before` in front of `words`, which has room for them. */
static void put_before(const struct call *call, const char **words)
{
	size_t more = words_count(call->before), count = 0;
	assert(more <= CALL_BEFORE_MAX);
	while (words[count]) {
		count++;
	}
	memmove(words + more, words, (count + 1) * sizeof(words[0]));
	for (size_t i = 0; i < more; i++) {
		words[i] = call->before[i];
	}
}

static void start_exec(struct call *call, const char **words)
{
	struct error err;
	put_before(call, words);
	struct exec_spec spec = {.argv = words, .want_stdin = true};
	call->exec = sandbox_exec(call->sandbox, &spec, &exec_listener, call, &err);
	if (!call->exec) {
		call_fail(call, &err);
		return;
	}
	int in ATTR_CLEANUP(fd_cleanup) = exec_take_stdin(call->exec);
	int out ATTR_CLEANUP(fd_cleanup) = exec_take_stdout(call->exec);
	ev_io_set(&call->far_words, exec_take_stderr(call->exec), EV_READ);
	ev_io_start(call->loop, &call->far_words);
	if (!send_go(call, in, out)) {
		error_set(&err, ERROR_SYSTEM, "rsync's remote shell has ended");
		call_fail(call, &err);
	}
}

/* ---- who connects ---- */

static bool is_token(const struct call *call, const char *text, size_t length)
{
	unsigned char differs = length != RSYNC_SHELL_TOKEN_LENGTH;
	for (size_t i = 0; i < RSYNC_SHELL_TOKEN_LENGTH && i < length; i++) {
		differs |= (unsigned char)(text[i] ^ call->token[i]);
	}
	return !differs;
}

/* The words after the token; NULL if the token is wrong, or it is not a command of rsync. */
static const char **read_request(
	const struct call *call, const char *request, size_t length, const char **words)
{
	size_t count = 0;
	if (length == 0 || request[length - 1] != '\0' ||
		!is_token(call, request, strlen(request))) {
		return NULL;
	}
	for (size_t at = strlen(request) + 1; at < length; at += strlen(request + at) + 1) {
		if (count == WORDS_MAX) {
			return NULL;
		}
		words[count++] = request + at;
	}
	words[count] = NULL;
	bool is_rsync =
		count > 2 && strcmp(words[0], "rsync") == 0 && strcmp(words[1], "--server") == 0;
	return is_rsync ? words : NULL;
}

static void read_count(struct call *call, const char *bytes, size_t length)
{
	struct rsync_shell_count count;
	if (length == sizeof(count)) {
		memcpy(&count, bytes, sizeof(count));
		call->result.sent = count.sent;
		call->result.received = count.received;
		ev_timer_again(call->loop, &call->silence);
	}
}

void call_on_shell(struct ev_loop *loop, ev_io *io, int events)
{
	static char bytes[RSYNC_SHELL_REQUEST_MAX]; // used only on the loop thread
	struct call *call = CONTAINER_OF(io, struct call, shell);
	const char *words[CALL_BEFORE_MAX + WORDS_MAX + 1];
	ssize_t length = recv(io->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (length < 0 && io_is_transient(errno)) {
		return;
	}
	if (length > 0 && call->has_asked) {
		read_count(call, bytes, (size_t)length);
		return;
	}
	const char **argv = length > 0 ? read_request(call, bytes, (size_t)length, words) : NULL;
	if (!argv) {
		io_close(call->loop, io);
		if (!call->has_asked) {
			ev_io_start(call->loop, &call->listener); // the right one may still connect
		}
		return;
	}
	call->has_asked = true;
	ev_timer_again(call->loop, &call->silence);
	call_unlisten(call);
	start_exec(call, argv);
}

static void on_connection(struct ev_loop *loop, ev_io *io, int events)
{
	struct call *call = CONTAINER_OF(io, struct call, listener);
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != geteuid()) {
		fd_close(&fd);
		return;
	}
	ev_io_stop(loop, io); // one at a time
	ev_io_set(&call->shell, fd, EV_READ);
	ev_io_start(loop, &call->shell);
}

/* ---- the socket ---- */

bool call_listen(struct call *call, const char *folder, struct error *err)
{
	/* The path may be longer than an address, so we use the folder's file descriptor. */
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	ev_init(&call->listener, on_connection);
	call->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = call->folder < 0
	                 ? -1
	                 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ev_io_set(&call->listener, fd, EV_READ);
	text_whole(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", call->folder,
		RSYNC_SHELL_SOCKET);
	if (call->folder >= 0) {
		unlinkat(call->folder, RSYNC_SHELL_SOCKET, 0);
	}
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, BACKLOG) < 0) {
		return error_set_errno(err, errno, "making a socket in %s", folder);
	}
	ev_io_start(call->loop, &call->listener);
	return make_token(call, err);
}

void call_unlisten(struct call *call)
{
	io_close(call->loop, &call->listener);
	if (call->folder >= 0) {
		unlinkat(call->folder, RSYNC_SHELL_SOCKET, 0);
	}
	fd_close(&call->folder);
}
