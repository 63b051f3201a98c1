/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "providers/ssh/libssh2_client.h"
#include "base/io.h"
#include "providers/ssh/libssh2_session.h"

/*
 * The socket as libssh2 sees it: sending always succeeds, and receiving ends after the turn's
 * share.
 */

static ssize_t take_output(
	libssh2_socket_t fd, const void *bytes, size_t size, int flags, void **abstract)
{
	struct ssh2_client *client = ssh2_session_owner(abstract);
	if (client->is_dying) {
		return (ssize_t)size;
	}
	if (!buf_append(&client->out, (struct span){bytes, size}, NULL)) {
		client_set_lost(client, "the server does not read: %zu bytes are waiting for it",
			client->out.len);
		return -EPIPE;
	}
	return (ssize_t)size;
}

/* Hides the connection's end from libssh2, so that data that came before can still be read. */
static ssize_t give_input(
	libssh2_socket_t fd, void *buffer, size_t size, int flags, void **abstract)
{
	struct ssh2_client *client = ssh2_session_owner(abstract);
	if (client->is_dying) {
		return -ECONNRESET;
	}
	if (client->has_error || client->input_left == 0) {
		return -EAGAIN;
	}
	size = size < client->input_left ? size : client->input_left;
	ssize_t count = recv(client->fd, buffer, size, MSG_DONTWAIT);
	if (count > 0) {
		/* A short read means that there is no more data. */
		client->input_left -= (size_t)count == size ? size : client->input_left;
		client->received_at = ev_now(client->context->loop);
		return count;
	}
	client->input_left = 0;
	if (count == 0) {
		client_set_lost(client, "the server has closed the connection");
	} else if (!io_is_transient(errno)) {
		client_set_lost(client, "receiving: %s", strerror(errno));
	}
	return -EAGAIN;
}

/* RFC 4253, 11.1; the server chooses the text. */
static void on_disconnect(LIBSSH2_SESSION *session, int reason, const char *message, int len,
	const char *language, int language_len, void **abstract)
{
	struct ssh2_client *client = ssh2_session_owner(abstract);
	client_set_lost(client, "the server has closed the connection (%d: %.*s)", reason,
		len > 0 && len < 200 ? len : 0, message ? message : "");
}

void wire_begin(struct ssh2_client *client)
{
	const struct ssh2 *ssh2 = client->ssh2;
	ssh2_session_set_owner(ssh2, client->session, client);
	ssh2->session_callback_set(
		client->session, LIBSSH2_CALLBACK_SEND, (void *)(intptr_t)take_output);
	ssh2->session_callback_set(
		client->session, LIBSSH2_CALLBACK_RECV, (void *)(intptr_t)give_input);
	ssh2->session_callback_set(
		client->session, LIBSSH2_CALLBACK_DISCONNECT, (void *)(intptr_t)on_disconnect);
}

void wire_flush(struct ssh2_client *client)
{
	while (client->out.len > 0 && !client->has_error) {
		struct span bytes = buf_span(&client->out);
		ssize_t count =
			send(client->fd, bytes.data, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (count > 0) {
			buf_consume(&client->out, (size_t)count);
		} else if (count < 0 && errno == EAGAIN) {
			return;
		} else if (count < 0 && errno != EINTR) {
			client_set_lost(client, "sending: %s", strerror(errno));
		}
	}
	buf_trim(&client->out, OUTPUT_MARK);
}
