/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_MUX_MUX_H
#define PROVIDERS_MUX_MUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"
#include "providers/mux/wire.h"

/*
 * One side of a link: bytes from the peer go in, bytes for the peer come out, and between them are
 * streams and messages. It reads and writes no descriptor, knows no clock and never blocks. Both
 * sides use the same code.
 *
 * The owner must do two things:
 *   - Bytes from the carrier: pass them to mux_receive. It always takes all of them: reading never
 *     waits for writing, so the two sides cannot block each other. The memory that a peer can make
 *     us hold is bounded by the windows of the streams that the owner opened, and by message_max.
 *   - While mux_output is not empty: write its bytes to the carrier as far as it takes them, then
 *     call mux_sent. Check again after each mux_receive, after each call of a function marked
 *     (out), and at mux_due_us. Each frame is chosen as late as possible, so do not copy the output
 *     into a large buffer of your own.
 *
 * Order of sending: HELLO, END, STATUS, windows and heartbeats; then messages; then MUX_AGENT
 * streams in turn; then MUX_BULK streams in turn. All bulk streams together have at most "measured
 * rate × (lowest round trip + MUX_BULK_SLACK_US)" bytes under way, but at least MUX_BULK_MIN.
 *
 * Only mux_receive raises handlers. They may call every function here, also mux_destroy. One
 * thread.
 */
struct mux;
struct mux_stream;

enum mux_side { MUX_BROKER, MUX_RUNNER };
enum mux_direction { MUX_IN, MUX_OUT }; // as seen from here
enum mux_class { MUX_AGENT, MUX_BULK };

enum {
	MUX_STREAMS_MAX = 1024,        // open at once
	MUX_WINDOW_MAX = 1 << 30,      //
	MUX_CONTROL_MAX = 8 << 20,     // messages not yet acknowledged by the peer
	MUX_BULK_SLACK_US = 50000,     //
	MUX_BULK_MIN = 64 * 1024,      //
	MUX_PING_US = 5000000,         // the longest time between heartbeats
	MUX_WINDOW_TERMINAL = 1 << 20, // runner_stream.window for a terminal
	MUX_WINDOW_FILE = 1 << 20,     // for a file's content
	MUX_WINDOW_INPUT = 256 * 1024, // for a stdin
	MUX_WINDOW_TCP = 256 * 1024,   // for each direction of a forwarded connection
};

struct mux_listener {
	/*
	 * The peer's HELLO, the first event of each channel. If the peer has another version, the
	 * link handles only END and STATUS, and drops everything else.
	 */
	void (*on_hello)(void *data, struct span text, bool is_same_version);
	void (*on_message)(void *data, const struct runner_message *message);
	void (*on_end)(void *data, struct span text);
	void (*on_status)(void *data, struct span text);
};

struct mux_stream_listener {
	/* MUX_IN: more bytes have come (mux_stream_peek), or the end (mux_stream_is_over). */
	void (*on_readable)(void *data);
	/* MUX_OUT: mux_stream_write takes bytes again after it took fewer than all. */
	void (*on_writable)(void *data);
	/*
	 * The peer gave the stream up. MUX_IN: the rest will never come. MUX_OUT: nobody reads it;
	 * close the pipe, so that the writer gets SIGPIPE. After this only call mux_stream_close.
	 */
	void (*on_reset)(void *data);
};

struct mux *mux_create(
	enum mux_side side, const struct mux_listener *listener, void *data, uint64_t now_us);
void mux_destroy(struct mux *mux); // also its streams; NULL is fine

/*
 * (out) Call this once in each channel, before anything else. `text` is described in wire.h; the
 * link adds the version.
 */
void mux_hello(struct mux *mux, struct span text);

/*
 * (out) A new channel replaces the old one; the other side must do the same. Then call mux_hello
 * again. Both sides send again what was under way and did not arrive, so each byte and each message
 * arrives once. Only END and STATUS may be lost. Streams stay as they are: they take bytes up to
 * their windows even while there is no channel. Do not call it from a handler.
 */
void mux_restart(struct mux *mux, uint64_t now_us);

/* From now on acknowledges each message at once, not several together. */
void mux_acknowledge_at_once(struct mux *mux);

/* Whether the peer has acknowledged everything: messages, streams and their ends. */
bool mux_is_acknowledged(const struct mux *mux);

/*
 * Where the messages that were sent so far end, and whether the peer has acknowledged all messages
 * up to such an end.
 */
uint64_t mux_messages_end(const struct mux *mux);
bool mux_has_arrived(const struct mux *mux, uint64_t messages_end);

/* (out) Acknowledges the peer's messages at once, this time only. */
void mux_acknowledge(struct mux *mux);

/* Whether DATA flows. After mux_restart it flows once the peer has said what it received. */
bool mux_is_resumed(const struct mux *mux);

/* (out) Send END and STATUS. A second call replaces a text that was not sent yet. */
void mux_end(struct mux *mux, struct span text);
void mux_status(struct mux *mux, struct span text);

/*
 * Takes bytes from the peer. ERROR_PROTOCOL if they break the format, a window or a rule of wire.h;
 * ERROR_LIMIT if too many answers for the peer are waiting. In both cases the link is unusable:
 * destroy it. Returns true if a handler destroyed it.
 */
bool mux_receive(
	struct mux *mux, struct span bytes, uint64_t now_us, struct error *err) ATTR_NODISCARD;

/* Bytes for the peer, borrowed until the next call of any function; empty: there are none now. */
struct span mux_output(struct mux *mux, uint64_t now_us);
void mux_sent(struct mux *mux, size_t count); // this many bytes were written

/* The time at which to check mux_output again even if nothing happens. */
uint64_t mux_due_us(const struct mux *mux);

/*
 * (out) Heartbeats come often enough for a peer that waits this long for any byte (0: unknown),
 * and at least every MUX_PING_US.
 */
void mux_set_patience(struct mux *mux, uint64_t patience_us);

/* The next heartbeat is due at once. */
void mux_ping(struct mux *mux);

/* The time of the last bytes from the peer. The owner decides when the link counts as lost. */
uint64_t mux_heard_us(const struct mux *mux);

/* The lowest round trip so far; 0: not measured yet. */
uint64_t mux_round_trip_us(const struct mux *mux);

/*
 * (out) Sends a message. ERROR_LIMIT: the peer reads too slowly, or the message is too large;
 * ERROR_CONFIG.
 */
bool mux_send(
	struct mux *mux, const struct runner_message *message, struct error *err) ATTR_NODISCARD;

/*
 * Opens a stream. The broker does this before it sends the message that names the stream, the
 * runner when it receives that message. Both use the same window. Stream numbers grow: the broker
 * takes mux_next_stream. NULL: ERROR_PROTOCOL if the number is not larger than the last or the
 * window is invalid; ERROR_LIMIT if too many streams are open.
 */
uint32_t mux_next_stream(const struct mux *mux);
struct mux_stream *mux_open(struct mux *mux, const struct runner_stream *stream,
	enum mux_direction direction, enum mux_class class,
	const struct mux_stream_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/*
 * (out) Call this instead of mux_open for an unwanted stream of a message: its bytes are dropped,
 * and the peer gets on_reset. Does nothing for stream 0 and for old streams.
 */
void mux_refuse(struct mux *mux, const struct runner_stream *stream);

/*
 * (out) MUX_OUT: takes bytes up to the window and returns how many. Bytes are kept until the peer
 * has them. While this takes none, stop reading from the producer, so that it slows down.
 */
size_t mux_stream_write(struct mux_stream *stream, struct span bytes);
size_t mux_stream_room(const struct mux_stream *stream);

/*
 * (out) MUX_OUT: ends the stream after the bytes written so far. From then on the link owns the
 * stream.
 */
void mux_stream_finish(struct mux_stream *stream);

/* MUX_IN: received bytes that were not consumed; borrowed until the next call. */
struct span mux_stream_peek(const struct mux_stream *stream);
void mux_stream_consume(struct mux_stream *stream, size_t count); // (out)
bool mux_stream_is_over(
	const struct mux_stream *stream); // the end was received, and everything is consumed

/*
 * (out) Frees the handle and raises nothing more. Unless the stream has ended, the peer gets
 * on_reset. NULL is fine.
 */
void mux_stream_close(struct mux_stream *stream);

/* ---- between a stream and a descriptor ---- */

enum mux_pump {
	MUX_PUMP_FD,     // call again when the descriptor is ready (readable or writable)
	MUX_PUMP_LINK,   // call again at on_writable or on_readable
	MUX_PUMP_OVER,   // the end was passed on: close the descriptor; after mux_pump_in the
	                 // stream, too
	MUX_PUMP_BROKEN, // the descriptor has failed: close it and the stream
};

/*
 * (out) Moves as many bytes as possible from a non-blocking descriptor into a MUX_OUT stream.
 * Finishes the stream at the descriptor's end. Sets *has_read, which may be NULL, once it has read
 * a byte.
 */
enum mux_pump mux_pump_out(struct mux_stream *stream, int fd, bool *has_read);

/* (out) Moves bytes from a MUX_IN stream to a descriptor. */
enum mux_pump mux_pump_in(struct mux_stream *stream, int fd);

#endif
