/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_CLIENT_H
#define PROVIDERS_SSH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"
#include "providers/ssh/target.h"

/*
 * One SSH connection, made by libssh2 (libssh2.c) or by the ssh program (openssh.c). It knows
 * channels that run a command, and does not know which command.
 *
 * Loop thread. No function raises an event before it returns; a handler may close the channel or
 * the client that raised it. Nothing blocks: calls of libraries that can only block (names,
 * connecting, authenticating) run on the pool.
 */
struct ssh_client;
struct ssh_channel;

struct ssh_client_listener {
	/* "Connecting to devbox (192.0.2.7 port 22)", "Authenticating as kim". May be NULL. */
	void (*on_progress)(void *data, const char *text);
	void (*on_ready)(void *data);
	/*
	 * The client could not connect, or lost its connection after it was ready. Every channel
	 * has raised on_lost before. Nothing follows; close the client. Reasons (docs/errors.md):
	 * HOST_KEY_UNKNOWN, HOST_KEY_MISMATCH, AUTH_FAILED, HOST_NOT_FOUND, HOST_UNREACHABLE,
	 * SSH_UNSUPPORTED (this client lacks something; the text says what, and names the other
	 * client), LINK_LOST, TIMEOUT_EXCEEDED.
	 */
	void (*on_lost)(void *data, const struct error *err);
};

/* How the command ended, as the server reports it; some servers do not report it. */
struct ssh_channel_end {
	bool is_known;
	int code;
	int signal; // 0: it ended by exit(code)
};

enum ssh_stream { SSH_STREAM_OUT, SSH_STREAM_ERR };

struct ssh_channel_listener {
	/* The server runs the command. */
	void (*on_open)(void *data);
	/*
	 * The server does not run it. ERROR_LIMIT: this connection takes no further channel
	 * (MaxSessions), but another may. Nothing follows.
	 */
	void (*on_refused)(void *data, const struct error *err);
	/*
	 * Output. Returns how many bytes the listener took. If it took fewer than all, no more
	 * bytes of that stream come before ssh_channel_resume, and the server has to wait. `bytes`
	 * is never empty.
	 */
	size_t (*on_bytes)(void *data, enum ssh_stream stream, struct span bytes);
	void (*on_eof)(void *data, enum ssh_stream stream);
	/* There is room again after an ssh_channel_write that took fewer bytes than it got. */
	void (*on_writable)(void *data);
	/* The server has closed the channel, after both on_eof. Nothing follows. */
	void (*on_closed)(void *data, const struct ssh_channel_end *end);
	/* The connection was lost. Nothing follows. */
	void (*on_lost)(void *data, const struct error *err);
};

/*
 * The parts of every client. Embed struct ssh_client and struct ssh_channel by value as the first
 * members; the functions below call these.
 */
struct ssh_client_impl {
	const char *name; // "libssh2", "openssh"
	void (*close)(struct ssh_client *client);
	struct ssh_channel *(*open)(struct ssh_client *client, const char *command,
		const struct ssh_channel_listener *listener, void *data, struct error *err);
	size_t (*write)(struct ssh_channel *channel, struct span bytes);
	void (*flush)(struct ssh_channel *channel); // optional
	void (*send_eof)(struct ssh_channel *channel);
	void (*resume)(struct ssh_channel *channel, enum ssh_stream stream);
	void (*close_channel)(struct ssh_channel *channel);
};

struct ssh_client {
	const struct ssh_client_impl *impl;
};

struct ssh_channel {
	struct ssh_client *client;
};

const char *ssh_client_name(const struct ssh_client *client);

/* Frees it and its channels, closes the connection, and raises nothing more. NULL is fine. */
void ssh_client_close(struct ssh_client *client);

/*
 * Runs a command as sshd does: through the user's login shell there. The command is one line of
 * printable ASCII without '!', so that every shell reads it alike. The client must be ready.
 */
struct ssh_channel *ssh_channel_open(struct ssh_client *client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/*
 * Takes bytes for the command's stdin, even before on_open, into a bounded buffer
 * (SSH_CHANNEL_BUFFER). Returns how many; if fewer than all, wait for on_writable.
 */
enum { SSH_CHANNEL_BUFFER = 256 * 1024 };
size_t ssh_channel_write(struct ssh_channel *channel, struct span bytes);

/*
 * Before ssh_channel_close, which drops what has not been sent: sends as much of it as is possible
 * without waiting. Raises nothing.
 */
void ssh_channel_flush(struct ssh_channel *channel);

/* Ends the command's stdin, after everything that was written. */
void ssh_channel_send_eof(struct ssh_channel *channel);

/* The listener can take bytes of this stream again. */
void ssh_channel_resume(struct ssh_channel *channel, enum ssh_stream stream);

/* Frees it, tells the server to close, and raises nothing more. NULL is fine. */
void ssh_channel_close(struct ssh_channel *channel);

/*
 * Connects. Target and context are borrowed until the client is closed. Both clients bound every
 * step by the target's deadlines.
 */
struct provider_context;
struct ssh_client *ssh_libssh2_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;
struct ssh_client *ssh_openssh_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * Connects with the client that the target names. SSH_CLIENT_AUTO: with libssh2 first, and with the
 * ssh program if that fails with SSH_UNSUPPORTED; on_progress reports the change. If a key is
 * pinned and the server shows another, this asks for the server's keys of other types, with one
 * connection for each type. HOST_KEY_MISMATCH if none of them is the pinned key.
 */
struct ssh_client *ssh_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
