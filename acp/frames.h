/* SPDX-License-Identifier: MIT */
#ifndef ACP_FRAMES_H
#define ACP_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json_check.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

/*
 * The incoming half of a link: splits bytes into lines; each line is one message (ACP,
 * "Transports": UTF-8 JSON, ended by a newline, with no newline inside). Each line is checked while
 * it arrives. A line longer than the maximum is checked up to its newline but not stored, so that
 * its id is known even if it comes last. CRLF is accepted; blank lines are skipped.
 */
enum {
	FRAME_READ_SIZE = 64 * 1024, // room offered for a read between large messages
	FRAME_IDLE_KEEP = 64 * 1024, // memory kept when nothing is buffered
};

enum frame_kind {
	FRAME_MESSAGE,  // bytes is one valid JSON document
	FRAME_INVALID,  // not JSON, or a ONCE place came twice; bytes is the line's beginning
	FRAME_TOO_LONG, // over the maximum, valid or not; bytes is the line's beginning
};

enum { FRAME_BEGINNING_MAX = 256 }; // bytes of INVALID and TOO_LONG lines

struct frame {
	enum frame_kind kind;
	struct span bytes;              // without the line end; borrowed until the next call
	size_t length;                  // of the whole line, without the line end
	struct error error;             // INVALID, TOO_LONG: why; ERROR_PROTOCOL or ERROR_LIMIT
	const struct json_check *check; // hits (offsets into bytes) and kept places
};

struct frame_reader;

struct frame_reader *frame_reader_create(const struct json_places *places, size_t max_message);
void frame_reader_destroy(struct frame_reader *reader);

/*
 * Returns where to put the next bytes, and how many fit (never 0). The room grows with the current
 * message. After each read call frame_reader_fed with the number of bytes, then frame_reader_next
 * until it returns false, and only then frame_reader_space again.
 */
char *frame_reader_space(struct frame_reader *reader, size_t *out_size);
void frame_reader_fed(struct frame_reader *reader, size_t count);

/* The next complete line; false when more bytes are needed. */
bool frame_reader_next(struct frame_reader *reader, struct frame *out_frame);

/*
 * The input has ended: returns the rest without a newline as one more line. False if there is no
 * rest.
 */
bool frame_reader_end(struct frame_reader *reader, struct frame *out_frame);

/*
 * Moves the memory of the message that frame_reader_next has just returned to *to, without copying
 * the message. *to must be empty, with a maximum that allows the message. If the message is smaller
 * than the other data in that memory, it is copied instead. Later lines stay with the reader. The
 * frame's bytes then lie in *to; its check is unchanged.
 */
void frame_reader_take(struct frame_reader *reader, struct buf *to);

/* Bytes held for lines not yet returned. */
size_t frame_reader_pending(const struct frame_reader *reader);

#endif
