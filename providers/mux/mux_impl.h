/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_MUX_MUX_IMPL_H
#define PROVIDERS_MUX_MUX_IMPL_H

#include "base/buf.h"
#include "base/list.h"
#include "providers/mux/flow.h"
#include "providers/mux/mux.h"

/* The parts of a mux; for mux.c, mux_in.c, mux_out.c and mux_resume.c. */

enum {
	MUX_TOLD_EVERY = 8192,       // a sender is notified at the latest after this many bytes
	MUX_KEPT_BUFFER = 32 * 1024, // memory that an empty buffer keeps
};

struct mux_stream {
	struct mux *mux;
	uint32_t number;
	enum mux_direction direction;
	enum mux_class class;
	uint64_t window;
	const struct mux_stream_listener *listener; // NULL: finished, owned by the link
	void *data;
	struct buf bytes; // MUX_OUT: not acknowledged. MUX_IN: not consumed
	bool is_reset;    // by the peer

	/* MUX_OUT. Positions in the stream: begin <= sent <= begin + bytes.len. */
	struct list ready; // mux.ready, while there is something to send
	uint64_t begin;    // of `bytes`
	uint64_t sent;
	uint64_t may_send; // from the peer's window
	bool is_finished;
	bool is_end_sent;
	bool wants_room; // raise on_writable
	bool is_named;   // in this channel, the peer has said how many of its bytes have arrived

	/* MUX_IN */
	struct list due; // mux.due, while the peer must be notified
	uint64_t received;
	uint64_t granted; // the peer may send up to this position
	uint64_t received_told;
	uint64_t granted_told;
	bool has_ended;
	bool is_end_told;
};

/* A HELLO, END or STATUS that waits to be sent. */
struct mux_text {
	struct buf text;
	bool is_due;
};

struct mux {
	enum mux_side side;
	const struct mux_listener *listener;
	void *data;
	int depth; // of calls of mux_receive
	bool is_doomed;
	bool is_broken;
	bool is_foreign; // the peer has another version
	bool is_prompt;  // mux_acknowledge_at_once

	/* mux_resume.c */
	bool owes_resumed; // RESUMED, after the windows that are due
	bool is_resuming;  // we wait for the peer's RESUMED and send no DATA

	struct mux_stream **streams; // owned; sorted by number
	size_t stream_count;
	size_t stream_capacity;
	uint32_t last_stream;
	struct mux_stream *control_in;
	struct mux_stream *control_out;
	struct mux_flow flow;

	/* receiving */
	struct buf input; // an incomplete frame
	size_t mark_len;  // received bytes of the mark
	size_t banner_len;
	bool has_mark;
	bool has_hello;
	uint64_t heard_us;

	/* sending */
	struct buf stage;     // complete frames, possibly partly written
	struct list ready[2]; // for each class: of struct mux_stream, in turn
	struct list due;      // of struct mux_stream
	struct mux_text texts[3];
	bool has_sent_mark;
	bool has_said_hello;
	bool has_pong;
	uint64_t pong;
	uint64_t ping_us;       // when the next heartbeat is due
	uint64_t ping_every_us; // at most MUX_PING_US
};

void mux_free(struct mux *mux);
struct mux_stream *mux_stream_find(const struct mux *mux, uint32_t number); // NULL: not open
void mux_stream_remove(struct mux_stream *stream);

/* Updates whether the stream waits to send. Call it after each change of the stream. */
void mux_note_ready(struct mux_stream *stream);

/* The same for a window that the peer must learn. */
void mux_note_window(struct mux_stream *stream);

/*
 * The peer has said by WINDOW how much of a stream it received. After a restart, sends the rest
 * again.
 */
void mux_resume_stream(struct mux_stream *stream);

/* Handles RESUMED; false: it is not allowed now. */
bool mux_take_resumed(struct mux *mux, const struct runner_header *header);

#endif
