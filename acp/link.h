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
 * One hop: a peer's messages in, messages to it out. Loop thread only; nothing
 * blocks. What is sent leaves at the end of the loop's turn, so that many small
 * messages share a write.
 *
 * Backpressure: sending never fails and never drops. Whoever sends looks at
 * link_is_over first; the listener that cannot pass a message on returns false
 * from on_frame, and gets the same frame again after link_resume. So a link
 * holds max_queue bytes and one message of each who sends to it.
 */
struct link;

enum {
	LINK_MOVE_MIN = 32 * 1024, // bytes; a message as long as this is forwarded without a copy
	LINK_READS_A_TURN = 4,     // reads before other watchers get their turn
};

struct link_listener {
	/*
	 * A line has come in. True: done with it. False: not now; the link stops
	 * reading until link_resume. May close the link.
	 */
	bool (*on_frame)(void *data, const struct frame *frame);
	/* Nothing more will come in; err is NULL where the peer has ended it. Once. */
	void (*on_end)(void *data, const struct error *err);
	/* The peer takes nothing more (as of outbox_write); what was queued is gone. Once. */
	void (*on_broken)(void *data, const struct error *err);
	/* The queue was over its limit and is below half of it now. */
	void (*on_drained)(void *data);
	/* Everything was written and the outgoing side closed, after link_finish_output. Once. */
	void (*on_flushed)(void *data);
};

struct link_config {
	struct ev_loop *loop;
	const struct json_places *places; // borrowed, outlives the link
	size_t max_message;
	size_t max_queue;
	const struct link_listener *listener;
	void *data;
};

struct link {
	struct link_config config;
	int in;
	int out;
	struct ev_io reader;
	struct ev_io writer;         // of low priority: what a turn sends leaves when it ends
	struct frame_reader *frames; // owned
	struct frame frame;          // the one in hand
	struct outbox ahead;         // leaves before the queue, also while that is held
	struct outbox queue;
	uint64_t read_bytes;  // since the start
	bool has_frame;       // frame was not taken yet
	bool is_paused;       // until link_resume
	bool is_held;         // the queue waits for link_release
	bool has_ended;       // end of file or an error was read
	int read_errno;       // 0 where the peer has ended it
	struct error failure; // the first of either descriptor; ERROR_NONE: there was none
	bool end_was_told;
	bool was_over;     // on_drained is owed
	bool is_finishing; // the output closes when it is empty
	bool is_broken;
	bool is_closed;
};

/* A link without descriptors: it queues what is sent until link_connect. */
void link_init(struct link *link, const struct link_config *config);

/* Takes over both descriptors (non-blocking; may be -1) and begins to read and write. */
void link_connect(struct link *link, int in, int out);

/* Closes the descriptors, forgets what is queued, raises nothing more. Idempotent. */
void link_close(struct link *link);

/* Frees; after link_close, and not inside one of the link's own events. */
void link_finish(struct link *link);

void link_resume(struct link *link);

/* Sends one message; the bytes are copied, a newline is added. */
void link_send(struct link *link, struct span message);

/* As link_send, but takes the memory of a large message; the buffer is as new afterwards. */
void link_send_taken(struct link *link, struct buf *message);

/* As link_send, before everything that waits in a held queue. */
void link_send_ahead(struct link *link, struct span message);

/*
 * Sends the frame that the reader `from` has just returned, with the given
 * edits (sealed by this; NULL for none). ERROR_PROTOCOL or ERROR_LIMIT where
 * the edits do not fit the message; nothing is sent then. The frame's bytes may
 * be gone afterwards.
 */
bool link_forward(struct link *link, struct frame_reader *from, const struct frame *frame,
	struct splice *splice, struct error *err) ATTR_NODISCARD;

/* Holds back what is sent (but not what is sent ahead) until link_release. */
void link_hold(struct link *link);
void link_release(struct link *link);

/* Closes the outgoing descriptor once everything was written. */
void link_finish_output(struct link *link);

/* The first error of either descriptor, NULL where there was none; a peer that has gone is none. */
const struct error *link_failure(const struct link *link);

/* A frame was refused and waits for link_resume. */
bool link_is_paused(const struct link *link);

/* More than max_queue bytes wait for the peer. */
bool link_is_over(const struct link *link);
size_t link_queued(const struct link *link);

/* Bytes that were written since the start. */
uint64_t link_written(const struct link *link);

#endif
