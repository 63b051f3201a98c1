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
 * One SSH connection, whatever makes it: libssh2 (libssh2.c) or the ssh program
 * (openssh.c). It knows channels that run a command, and nothing of what is run.
 *
 * Loop thread. No function raises anything before it returns; a handler may close
 * the channel or the client it is raised for. Nothing blocks: what libraries can
 * only do blocking (names, connecting, authenticating) is done on the pool.
 */
struct ssh_client;
struct ssh_channel;

struct ssh_client_listener {
	/* "Connecting to devbox (192.0.2.7 port 22)", "Authenticating as kim". May be NULL. */
	void (*on_progress)(void *data, const char *text);
	void (*on_ready)(void *data);
	/*
	 * It could not be made, or was lost after it was ready; every channel has been
	 * told before. Nothing follows; close it. Reasons (docs/errors.md):
	 * HOST_KEY_UNKNOWN, HOST_KEY_MISMATCH, AUTH_FAILED, HOST_NOT_FOUND,
	 * HOST_UNREACHABLE, SSH_UNSUPPORTED (this client cannot do what is needed: the text
	 * says what was missing and names the other client), LINK_LOST, TIMEOUT_EXCEEDED.
	 */
	void (*on_lost)(void *data, const struct error *err);
};

/* How the server says that the command ended; some servers say nothing. */
struct ssh_channel_end {
	bool is_known;
	int code;
	int signal; // 0: by exit(code)
};

enum ssh_stream { SSH_STREAM_OUT, SSH_STREAM_ERR };

struct ssh_channel_listener {
	/* The server runs the command. */
	void (*on_open)(void *data);
	/*
	 * It does not. ERROR_LIMIT: this connection takes no further channel (MaxSessions);
	 * another may. Nothing follows.
	 */
	void (*on_refused)(void *data, const struct error *err);
	/*
	 * Output. Returns how many of the bytes were taken; where that is fewer than all,
	 * no more comes of that stream until ssh_channel_resume, and the server is
	 * held back. `bytes` is never empty.
	 */
	size_t (*on_bytes)(void *data, enum ssh_stream stream, struct span bytes);
	void (*on_eof)(void *data, enum ssh_stream stream);
	/* After a short ssh_channel_write: there is room again. */
	void (*on_writable)(void *data);
	/* The server has closed it, after both on_eof. Nothing follows. */
	void (*on_closed)(void *data, const struct ssh_channel_end *end);
	/* The connection was lost. Nothing follows. */
	void (*on_lost)(void *data, const struct error *err);
};

/*
 * What a client is made of. Embed struct ssh_client and struct ssh_channel by value
 * as the first member; the functions below call these.
 */
struct ssh_client_impl {
	const char *name; // "libssh2", "openssh"
	void (*close)(struct ssh_client *client);
	struct ssh_channel *(*open)(struct ssh_client *client, const char *command,
		const struct ssh_channel_listener *listener, void *data, struct error *err);
	size_t (*write)(struct ssh_channel *channel, struct span bytes);
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

/* Frees it and its channels, raises nothing more, closes the connection. NULL is fine. */
void ssh_client_close(struct ssh_client *client);

/*
 * Runs a command, as sshd does: by the login shell of the user there. One line of
 * printable ASCII without '!', so that every shell reads it alike. The client is ready.
 */
struct ssh_channel *ssh_channel_open(struct ssh_client *client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/*
 * Takes bytes for the command's stdin, also before on_open, up to a bounded buffer
 * (SSH_CHANNEL_BUFFER); returns how many. Fewer than all: wait for on_writable.
 */
enum { SSH_CHANNEL_BUFFER = 256 * 1024 };
size_t ssh_channel_write(struct ssh_channel *channel, struct span bytes);

/* The half-close, after everything that was written. */
void ssh_channel_send_eof(struct ssh_channel *channel);

/* The listener can take bytes of this stream again. */
void ssh_channel_resume(struct ssh_channel *channel, enum ssh_stream stream);

/* Frees it and raises nothing more; the server is told to close. NULL is fine. */
void ssh_channel_close(struct ssh_channel *channel);

/*
 * Connects. The target is borrowed until the client is closed; the context as long. Both
 * clients bound every step by the target's deadlines.
 */
struct provider_context;
struct ssh_client *ssh_libssh2_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;
struct ssh_client *ssh_openssh_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * As the target's `client` says; SSH_CLIENT_AUTO: libssh2, and the ssh program where that
 * fails with SSH_UNSUPPORTED, which is told through on_progress. Where a key is pinned and the
 * server shows another one, it is asked for its keys of the other types, each in a connection
 * of its own: HOST_KEY_MISMATCH once none is the pinned one.
 */
struct ssh_client *ssh_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
