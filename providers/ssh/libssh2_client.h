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
 * The libssh2 client, shared by its files: libssh2.c makes and ends the connection, libssh2_turn.c
 * works on it once it is made, libssh2_open.c opens channels, libssh2_channel.c moves their bytes,
 * libssh2_wire.c is the socket, libssh2_alive.c watches it.
 *
 * All work on a ready connection happens in turns. A turn receives the bytes that have come, lets
 * every channel do as much as it can, and sends the output. The functions of client.h only ask for
 * the next turn. Objects that handlers close are freed at the end of the turn.
 *
 * libssh2 sends into our own buffer, which always has room, so that it never stops in the middle of
 * a packet; while a packet is incomplete, it lets no other channel write. Bulk data waits until the
 * buffer is below OUTPUT_MARK.
 */
enum {
	OUTPUT_MARK = 128 * 1024,
	OUTPUT_MAX = 2 * 1024 * 1024,     // more: the server asks for much but reads nothing
	TURN_INPUT_MAX = 512 * 1024,      // from the socket, in one turn
	CHANNEL_TURN_MAX = 256 * 1024,    // from one stream of a channel, in one turn
	CHANNEL_READ_SIZE = 64 * 1024,    // taken from libssh2 in one call
	CHANNEL_WINDOW = 2 * 1024 * 1024, // bytes that the server may send ahead of the listener
	CHANNEL_WINDOW_STEP = 256 * 1024, // given back to the server in steps of this size
	CHANNEL_PACKET = 32 * 1024,
	CHANNELS_MAX = 256, // of a connection, including those that are being opened or closed
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
	bool is_closed; // freed at the end of the turn
	struct route *route;
	struct login *login; // NULL unless it is running

	/* The connection, from CLIENT_READY on. */
	LIBSSH2_SESSION *session;
	int fd;
	struct ev_io readable;
	struct ev_io writable;
	struct soon soon;       // the next turn, after the loop has handled everything else
	struct ev_prepare next; // the next turn, after the handlers of this iteration
	struct buf out;         // already encrypted
	size_t input_left;      // bytes that this turn may still receive
	bool is_dying;          // nothing is sent or received any more, even if libssh2 tries
	bool ends_silently;     // without a disconnect message (ssh2_flush)
	bool wants_turn;        // work was left over
	bool awaits_room;       // input of a channel waits until the output is shorter
	bool has_error;         // `error` says why the connection was lost
	struct error error;

	/* Watching the other end. */
	struct ev_timer alive;
	double received_at; // time of ev_now
	double alive_from;  // time of ev_now when the timer was set
	double alive_due;
	double sleep_total; // seconds that this machine had slept at the last look
	int silent_intervals;

	struct list channels;         // in ssh2_channel.link
	size_t channel_count;         // of them
	struct ssh2_channel *opening; // libssh2 opens it now; NULL: none
	bool is_probing;              // `opening` is a probe
	struct ssh2_channel *probe;   // an opened probe that is being closed; NULL: none
	char read_space[CHANNEL_READ_SIZE];
};

enum channel_state {
	CHANNEL_WAITING,  // its turn to be opened has not come
	CHANNEL_OPENING,  // client->opening
	CHANNEL_STARTING, // the command was sent
	CHANNEL_RUNNING,
	CHANNEL_ENDED, // nothing more is raised
};

struct ssh2_stream {
	struct buf rest; // bytes that the listener did not take
	bool is_held;    // the listener waits; until ssh_channel_resume
	bool was_eof;    // on_eof was raised
};

struct ssh2_channel {
	struct ssh_channel base;
	struct list link; // in client->channels
	const struct ssh_channel_listener *listener;
	void *data;
	enum channel_state state;
	bool is_closed;          // by its owner; freed when libssh2 has released it
	LIBSSH2_CHANNEL *handle; // NULL until it is open
	char *command;           // NULL: a TCP connection from the server
	char *host;              // target of the TCP connection
	int port;
	struct buf in;          // for the command's stdin
	size_t in_committed;    // bytes of it that libssh2 has begun to send
	unsigned long widening; // growth of the window that is not sent yet
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

/* Takes over the session and starts with turns. */
void client_begin(struct ssh2_client *client, LIBSSH2_SESSION *session, int fd);
void client_ask_turn(struct ssh2_client *client); // soon
void client_finish(struct ssh2_client *client);   // frees everything, at any stage
/* The connection is lost; the turn ends by reporting it. The first reason counts. */
void client_set_lost(struct ssh2_client *client, const char *format, ...) ATTR_PRINTF(2, 3);
/*
 * Checks the result of a libssh2 function: an error that is neither "try again" nor that of a
 * single channel ends the connection.
 */
void client_check(struct ssh2_client *client, long outcome);

/* ---- libssh2_wire.c ---- */

void wire_begin(struct ssh2_client *client); // sets libssh2's callbacks
void wire_flush(struct ssh2_client *client);

/* ---- libssh2_alive.c ---- */

void alive_begin(struct ssh2_client *client);
void alive_end(struct ssh2_client *client);

/* ---- libssh2_open.c ---- */

/* Opens waiting channels, one at a time. */
void open_step(struct ssh2_client *client);
bool open_is_due(const struct ssh2_client *client); // something is being opened, or waits for it
/* Makes the server answer, by asking for a kind of channel that does not exist. */
void open_probe(struct ssh2_client *client);
/* A channel to a TCP port that the server can reach; on_open once it is connected. */
struct ssh_channel *ssh2_open_tcp(struct ssh_client *client, const char *host, int port,
	const struct ssh_channel_listener *listener, void *data, struct error *err) ATTR_NODISCARD;
struct ssh_channel *ssh2_open_command(struct ssh_client *client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* ---- libssh2_channel.c ---- */

void channel_step(struct ssh2_channel *channel);
bool channel_is_live(const struct ssh2_channel *channel); // its listener still gets events
void channel_free(struct ssh2_channel *channel); // our part; libssh2's part is already gone
void channel_refused(struct ssh2_channel *channel, enum error_code code, const char *why);
size_t ssh2_write(struct ssh_channel *channel, struct span bytes);
void ssh2_flush(struct ssh_channel *channel);
void ssh2_send_eof(struct ssh_channel *channel);
void ssh2_resume(struct ssh_channel *channel, enum ssh_stream stream);
void ssh2_close_channel(struct ssh_channel *channel);

#endif
