/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_CLIENT_H
#define PROVIDERS_SSH_LIBSSH2_CLIENT_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/soon.h"
#include "providers/provider.h"
#include "providers/ssh/client.h"
#include "providers/ssh/libssh2_library.h"
#include "providers/ssh/libssh2_login.h"
#include "providers/ssh/libssh2_route.h"

/*
 * The client with libssh2, between its files: libssh2.c makes the connection and ends it,
 * libssh2_turn.c works on it once it is made, libssh2_open.c opens channels,
 * libssh2_channel.c moves their bytes, libssh2_wire.c is the socket, libssh2_alive.c watches it.
 *
 * All work on a ready connection is done in turns: what came is taken in, then every channel
 * does what it can, then what is to go out is sent. The functions of client.h leave
 * word for the next turn. What handlers close is freed at the end of the turn.
 *
 * libssh2 sends into a buffer of ours which always has room, so that it never stops in the
 * middle of a packet: as long as one is cut, it lets no other channel write. Bulk waits
 * until the buffer is below OUTPUT_MARK.
 */
enum {
	OUTPUT_MARK = 128 * 1024,
	OUTPUT_MAX = 2 * 1024 * 1024,     // beyond it the server reads nothing and asks for much
	TURN_INPUT_MAX = 512 * 1024,      // of the socket, in one turn
	CHANNEL_TURN_MAX = 256 * 1024,    // of one stream of a channel, in one turn
	CHANNEL_READ_SIZE = 64 * 1024,    // taken from libssh2 at once
	CHANNEL_WINDOW = 2 * 1024 * 1024, // bytes the server may send ahead of the listener
	CHANNEL_WINDOW_STEP = 256 * 1024, // of them, given back as soon as so many were taken
	CHANNEL_PACKET = 32 * 1024,
	CHANNELS_MAX = 256, // of a connection, those being opened and closed among them
};

enum client_stage { CLIENT_REACHING, CLIENT_LOGGING_IN, CLIENT_READY, CLIENT_LOST };

struct ssh2_client {
	struct ssh_client base;
	const struct provider_context *context;
	const struct ssh_target *target;
	const struct ssh_client_listener *listener;
	void *data;
	const struct ssh2 *ssh2;
	enum client_stage stage;
	bool in_turn;
	bool is_closed; // freed when the turn ends
	struct route *route;
	struct login *login; // NULL but while it runs

	/* The connection, from CLIENT_READY on. */
	LIBSSH2_SESSION *session;
	int fd;
	struct ev_io readable;
	struct ev_io writable;
	struct soon soon;       // the next turn, once the loop has looked at everything else
	struct ev_prepare next; // the same, once what it has seen is done
	struct buf out;         // encrypted already
	size_t input_left;      // may be received in this turn
	bool is_dying;          // nothing goes in or out any more, whatever libssh2 tries
	bool wants_turn;        // something was left over
	bool has_error;         // `error` says how the connection was lost
	struct error error;

	/* Watching the other end. */
	struct ev_timer alive;
	double received_at; // of ev_now
	double alive_from;  // of ev_now: when the timer was set
	double alive_due;
	double sleep_total; // seconds that this machine has slept, at the last look
	int silent_intervals;

	struct list channels;         // ssh2_channel.link
	size_t channel_count;         // of them
	struct ssh2_channel *opening; // the one that libssh2 opens now; NULL: none
	bool is_probing;              // what is being opened is a probe
	struct ssh2_channel *probe;   // one that was opened, and is being closed
	char read_space[CHANNEL_READ_SIZE];
};

enum channel_state {
	CHANNEL_WAITING,  // for its turn to be opened
	CHANNEL_OPENING,  // client->opening
	CHANNEL_STARTING, // its command was sent
	CHANNEL_RUNNING,
	CHANNEL_ENDED, // nothing is raised any more
};

struct ssh2_stream {
	struct buf rest; // what the listener did not take
	bool is_held;    // until ssh_channel_resume
	bool was_eof;    // on_eof was raised
};

struct ssh2_channel {
	struct ssh_channel base;
	struct list link; // of client->channels
	const struct ssh_channel_listener *listener;
	void *data;
	enum channel_state state;
	bool is_closed;          // by its user; freed as soon as libssh2 lets it go
	LIBSSH2_CHANNEL *handle; // NULL until open
	char *command;           // NULL: a TCP connection from there
	char *host;              // of the TCP connection
	int port;
	struct buf in;          // for its stdin
	size_t in_committed;    // of it, what libssh2 has begun to send
	unsigned long widening; // of the window: begun, and not sent yet
	bool was_short;         // the writer waits for on_writable
	bool wants_eof;
	bool has_sent_eof;
	struct ssh2_stream streams[2]; // by enum ssh_stream
};

static inline struct ssh2_client *client_of(struct ssh_client *client)
{
	return CONTAINER_OF(client, struct ssh2_client, base);
}

static inline struct ssh2_channel *channel_of(struct ssh_channel *channel)
{
	return CONTAINER_OF(channel, struct ssh2_channel, base);
}

/* ---- libssh2_turn.c ---- */

/* Takes the session over and begins with turns. */
void client_begin(struct ssh2_client *client, LIBSSH2_SESSION *session, int fd);
void client_ask_turn(struct ssh2_client *client); // soon
void client_finish(struct ssh2_client *client);   // frees it all, whatever its stage
/* The connection is lost; the turn ends with telling so. The first reason counts. */
void client_set_lost(struct ssh2_client *client, const char *format, ...) ATTR_PRINTF(2, 3);
/* An error of a libssh2 function that is neither "later" nor of one channel alone. */
void client_check(struct ssh2_client *client, long outcome);

/* ---- libssh2_wire.c ---- */

void wire_begin(struct ssh2_client *client); // libssh2's callbacks
void wire_flush(struct ssh2_client *client);

/* ---- libssh2_alive.c ---- */

void alive_begin(struct ssh2_client *client);
void alive_end(struct ssh2_client *client);

/* ---- libssh2_open.c ---- */

/* Opens what waits, one at a time. */
void open_step(struct ssh2_client *client);
bool open_is_due(const struct ssh2_client *client); // something is or waits to be opened
/* Makes the server say something, by asking for a channel of a kind that does not exist. */
void open_probe(struct ssh2_client *client);
/* A channel to a TCP port as seen from there; on_open when it is connected. */
struct ssh_channel *ssh2_open_tcp(struct ssh_client *client, const char *host, int port,
	const struct ssh_channel_listener *listener, void *data, struct error *err) ATTR_NODISCARD;
struct ssh_channel *ssh2_open_command(struct ssh_client *client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* ---- libssh2_channel.c ---- */

void channel_step(struct ssh2_channel *channel);
bool channel_is_live(const struct ssh2_channel *channel); // its listener is to be told things
void channel_free(struct ssh2_channel *channel);          // ours; libssh2's part has gone
void channel_refused(struct ssh2_channel *channel, enum error_code code, const char *why);
size_t ssh2_write(struct ssh_channel *channel, struct span bytes);
void ssh2_send_eof(struct ssh_channel *channel);
void ssh2_resume(struct ssh_channel *channel, enum ssh_stream stream);
void ssh2_close_channel(struct ssh_channel *channel);

#endif
