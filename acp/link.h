/* SPDX-License-Identifier: MIT */
#ifndef ACP_LINK_H
#define ACP_LINK_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "acp/frames.h"
#include "base/json_check.h"
#include "acp/outbox.h"
#include "acp/splice.h"
#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * One hop: receives a peer's messages and sends messages to it. Loop thread only; nothing blocks.
 * Messages are written at the end of the loop's turn, so that many small messages share a write.
 *
 * Backpressure: sending never fails and never drops. The sender checks link_is_over first. A
 * listener that cannot pass a message on returns false from on_frame, and gets the same frame again
 * after link_resume. So a link holds at most max_queue bytes and one message of each sender.
 */
struct link;

enum {
	LINK_MOVE_MIN =
		32 * 1024, // bytes; messages of at least this length are forwarded without a copy
	LINK_READS_A_TURN = 4, // reads in a row before other watchers get their turn
};

struct link_listener {
	/*
	 * A line has arrived. Return true if it was handled. Return false to stop reading until
	 * link_resume. May close the link.
	 */
	bool (*on_frame)(void *data, const struct frame *frame);
	/* No more input will arrive; err is NULL if the peer closed its end. Called once. */
	void (*on_end)(void *data, const struct error *err);
	/*
	 * The peer accepts no more output (see outbox_write); the queue was dropped. Called once.
	 */
	void (*on_broken)(void *data, const struct error *err);
	/* The queue was over its limit and has fallen below half of it. */
	void (*on_drained)(void *data);
	/*
	 * After link_finish_output, everything was written and the outgoing side was closed. Called
	 * once.
	 */
	void (*on_flushed)(void *data);
};

struct link_config {
	struct ev_loop *loop;
	const struct json_places *places; // borrowed, outlives the link
	size_t max_message;
	size_t max_queue;
	bool may_grow_pipes; // the first message of 64 KiB enlarges both pipes (fd_grow_pipe)
	const struct link_listener *listener;
	void *data;
};

struct link {
	struct link_config config;
	int in;
	int out;
	struct ev_io reader;
	struct ev_io writer;         // low priority, so that it runs when a turn ends
	struct frame_reader *frames; // owned
	struct frame frame;          // the current one
	struct outbox ahead;         // is sent before the queue, also while the queue is held
	struct outbox queue;
	uint64_t read_bytes;  // since the start
	bool has_frame;       // the listener has not accepted `frame` yet
	bool is_paused;       // until link_resume
	bool is_held;         // the queue waits for link_release
	bool has_ended;       // end of file or an error was read
	int read_errno;       // 0 if the peer closed its end
	struct error failure; // the first error of either file descriptor; ERROR_NONE: none so far
	bool end_was_told;
	bool in_is_grown; // fd_grow_pipe was called
	bool out_is_grown;
	bool was_over;     // on_drained must still be called
	bool is_finishing; // the output closes when it is empty
	bool is_broken;
	bool is_closed;
};

/* Initialises a link without file descriptors. It queues messages until link_connect. */
void link_init(struct link *link, const struct link_config *config);

/* Takes over both file descriptors (non-blocking; may be -1) and begins to read and write. */
void link_connect(struct link *link, int in, int out);

/* Closes the file descriptors, drops the queue and calls no more callbacks. Idempotent. */
void link_close(struct link *link);

/* Frees the link's memory. Call it after link_close, and not from one of the link's callbacks. */
void link_finish(struct link *link);

void link_resume(struct link *link);

/* Sends one message; the bytes are copied, a newline is added. */
void link_send(struct link *link, struct span message);

/* Like link_send, but takes the memory of a large message; the buffer is as new afterwards. */
void link_send_taken(struct link *link, struct buf *message);

/* Like link_send, but the message overtakes everything in a held queue. */
void link_send_ahead(struct link *link, struct span message);

/*
 * Sends the frame that the reader `from` has just returned, with the given edits (NULL for none).
 * Seals the edits. Fails with ERROR_PROTOCOL or ERROR_LIMIT if the edits do not fit the message;
 * then nothing is sent. The frame's bytes may be gone afterwards.
 */
bool link_forward(struct link *link, struct frame_reader *from, const struct frame *frame,
	struct splice *splice, struct error *err) ATTR_NODISCARD;

/* Holds back messages (except those of link_send_ahead) until link_release. */
void link_hold(struct link *link);
void link_release(struct link *link);

/* Closes the outgoing file descriptor once everything is written. */
void link_finish_output(struct link *link);

/* The first error of either file descriptor, or NULL. That the peer has gone is no error. */
const struct error *link_failure(const struct link *link);

/* The listener refused a frame, which waits for link_resume. */
bool link_is_paused(const struct link *link);

/* More than max_queue bytes wait for the peer. */
bool link_is_over(const struct link *link);
size_t link_queued(const struct link *link);

/* Bytes written since the start. */
uint64_t link_written(const struct link *link);

#endif
