/* SPDX-License-Identifier: MIT */
#include "providers/ssh/openssh_mux.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"

enum {
	VERSION = 4,
	MESSAGE_MAX = 16 * 1024, // from the master; the longest contains a reason
	REQUEST_MAX = 16 * 1024,
	NO_ESCAPE = -1,
};

/* ---- numbers and texts, as in SSH (RFC 4251, 5) ---- */

static void put_number(struct buf *buf, uint32_t number)
{
	uint32_t wire = htonl(number);
	buf_add(buf, (struct span){(const char *)&wire, sizeof(wire)});
}

static bool put_text(struct buf *buf, const char *text, struct error *err)
{
	size_t len = strlen(text);
	if (len > REQUEST_MAX / 2) {
		return error_set(err, ERROR_LIMIT, "the command has %zu bytes", len);
	}
	put_number(buf, (uint32_t)len);
	return buf_append(buf, span_of(text), err);
}

static bool take_number(struct span *from, uint32_t *out_number)
{
	uint32_t wire;
	if (from->len < sizeof(wire)) {
		return false;
	}
	memcpy(&wire, from->data, sizeof(wire));
	*out_number = ntohl(wire);
	from->data += sizeof(wire);
	from->len -= sizeof(wire);
	return true;
}

static bool take_text(struct span *from, struct span *out_text)
{
	uint32_t len;
	if (!take_number(from, &len) || len > from->len) {
		return false;
	}
	*out_text = (struct span){from->data, len};
	from->data += len;
	from->len -= len;
	return true;
}

/* ---- sending to the master ---- */

/*
 * A request fits into the socket's buffer, which is nearly empty. If it does not fit, the master
 * has stopped reading.
 */
static bool send_bytes(const struct mux *mux, struct span bytes, struct error *err)
{
	ssize_t sent = send(mux->fd, bytes.data, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent != (ssize_t)bytes.len) {
		int errnum = errno;
		return sent < 0 && errnum != EAGAIN
		               ? error_set_errno(err, errnum, "writing to ssh's control socket")
		               : error_set(err, ERROR_UNAVAILABLE, "ssh does not read");
	}
	return true;
}

static bool send_message(const struct mux *mux, const struct buf *body, struct error *err)
{
	struct buf message ATTR_CLEANUP(buf_finish);
	buf_init(&message, REQUEST_MAX + sizeof(uint32_t));
	put_number(&message, (uint32_t)body->len);
	return buf_append(&message, buf_span(body), err) &&
	       send_bytes(mux, buf_span(&message), err);
}

/* Sends one byte with one descriptor. */
static bool send_fd(const struct mux *mux, int fd, struct error *err)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(mux->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
		int errnum = errno;
		return error_set_errno(err, errnum, "handing a descriptor to ssh");
	}
	return true;
}

static bool send_hello(const struct mux *mux, struct error *err)
{
	struct buf body ATTR_CLEANUP(buf_finish);
	buf_init(&body, REQUEST_MAX);
	put_number(&body, MUX_HELLO);
	put_number(&body, VERSION);
	return send_message(mux, &body, err);
}

bool mux_request_alive(struct mux *mux, uint32_t id, struct error *err)
{
	struct buf body ATTR_CLEANUP(buf_finish);
	buf_init(&body, REQUEST_MAX);
	put_number(&body, MUX_ALIVE_CHECK);
	put_number(&body, id);
	return send_message(mux, &body, err);
}

bool mux_request_session(struct mux *mux, const char *command, const int fds[3],
	bool forwards_agent, struct error *err)
{
	struct buf body ATTR_CLEANUP(buf_finish);
	buf_init(&body, REQUEST_MAX);
	put_number(&body, MUX_NEW_SESSION);
	put_number(&body, 0); // the request's id
	put_number(&body, 0); // reserved: an empty text
	put_number(&body, 0); // no terminal
	put_number(&body, 0); // no X11
	put_number(&body, forwards_agent ? 1 : 0);
	put_number(&body, 0); // no subsystem
	put_number(&body, (uint32_t)NO_ESCAPE);
	put_number(&body, 0); // the terminal's type: an empty text
	if (!put_text(&body, command, err) || !send_message(mux, &body, err)) {
		return false;
	}
	for (int i = 0; i < 3; i++) {
		if (!send_fd(mux, fds[i], err)) {
			return false;
		}
	}
	return true;
}

/* ---- receiving from the master ---- */

/* False if the message violates the protocol. Skips messages of unknown types. */
static bool parse(struct span body, struct mux_message *out)
{
	if (!take_number(&body, &out->type) || !take_number(&body, &out->id)) {
		return false;
	}
	switch ((enum mux_type)out->type) {
	case MUX_HELLO:
		return out->id == VERSION;
	case MUX_EXIT_MESSAGE:
		return take_number(&body, &out->value);
	case MUX_FAILURE:
	case MUX_PERMISSION_DENIED:
		return take_text(&body, &out->text);
	default:
		return true;
	}
}

/* Takes the next complete message from the buffer. */
enum step { STEP_MESSAGE, STEP_MORE, STEP_WRONG };

static enum step next(const struct mux *mux, struct mux_message *out, size_t *out_len)
{
	struct span bytes = buf_span(&mux->in);
	uint32_t len;
	if (!take_number(&bytes, &len)) {
		return STEP_MORE;
	}
	if (len > MESSAGE_MAX - sizeof(len)) {
		return STEP_WRONG;
	}
	if (bytes.len < len) {
		return STEP_MORE;
	}
	*out = (struct mux_message){0};
	*out_len = sizeof(len) + len;
	return parse((struct span){bytes.data, len}, out) ? STEP_MESSAGE : STEP_WRONG;
}

static void end(struct mux *mux)
{
	ev_io_stop(mux->loop, &mux->io);
	mux->listener->on_end(mux->data);
}

/* Raises received messages. False if the mux has ended, or a handler closed it. */
static bool raise_messages(struct mux *mux)
{
	struct mux_message message;
	size_t len;
	enum step step;
	while ((step = next(mux, &message, &len)) == STEP_MESSAGE) {
		struct life *life = life_hold(mux->life);
		if (message.type != MUX_HELLO) {
			mux->listener->on_message(mux->data, &message);
		}
		if (life_let_go(life)) {
			return false;
		}
		buf_consume(&mux->in, len);
	}
	if (step == STEP_WRONG) {
		end(mux);
		return false;
	}
	return true;
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct mux *mux = CONTAINER_OF(io, struct mux, io);
	for (;;) {
		size_t room = mux->in.max - mux->in.len; // never 0, because every message fits
		char *into = buf_reserve(&mux->in, room, NULL);
		ssize_t count = recv(mux->fd, into, room, MSG_DONTWAIT);
		if (count < 0 && io_is_transient(errno)) {
			return;
		}
		if (count <= 0) {
			end(mux);
			return;
		}
		buf_commit(&mux->in, (size_t)count);
		if (!raise_messages(mux)) {
			return;
		}
	}
}

/* ---- life ---- */

static bool connect_to(struct mux *mux, const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	assert(strlen(path) < sizeof(address.sun_path));
	text_whole(address.sun_path, sizeof(address.sun_path), "%s", path);
	mux->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (mux->fd < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making a socket");
	}
	if (connect(mux->fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		return true;
	}
	int errnum = errno;
	if (errnum == ENOENT || errnum == ECONNREFUSED) {
		return error_set(err, ERROR_NOT_FOUND, "no ssh is listening at %s", path);
	}
	if (errnum == EAGAIN) {
		return error_set(err, ERROR_UNAVAILABLE, "ssh accepts no connection at %s", path);
	}
	return error_set_errno(err, errnum, "connecting to %s", path);
}

bool openssh_mux_open(struct mux *mux, struct ev_loop *loop, const char *path,
	const struct mux_listener *listener, void *data, struct error *err)
{
	*mux = (struct mux){.loop = loop, .fd = -1, .listener = listener, .data = data};
	if (!connect_to(mux, path, err) || !send_hello(mux, err)) {
		fd_close(&mux->fd);
		return false;
	}
	mux->life = life_begin();
	buf_init(&mux->in, MESSAGE_MAX);
	ev_io_init(&mux->io, on_readable, mux->fd, EV_READ);
	ev_io_start(loop, &mux->io);
	return true;
}

void mux_close(struct mux *mux)
{
	if (mux->life) {
		ev_io_stop(mux->loop, &mux->io);
		fd_close(&mux->fd);
		buf_finish(&mux->in);
		life_end(mux->life);
		mux->life = NULL;
	}
}
