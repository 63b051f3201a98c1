/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_KEYS_REPLY_H
#define PROVIDERS_LOCAL_KEYS_REPLY_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"

/*
 * Rewrites the head of a server's answer for the cell. Leaves out fields that only concern our
 * connection to the server. Each answer is the last one on its connection in the cell.
 */
enum { REPLY_HEAD_MAX = 128 << 10, REPLY_CHUNK_SIZE = 16 };

struct reply {
	struct buf fields; // the lines that are kept
	int status;
	bool has_length; // the head gives the body's length; otherwise it comes in chunks
	bool is_whole;   // the last line was added
};

void reply_init(struct reply *reply);
void reply_finish(struct reply *reply);

/*
 * Adds a line with its line end, as libcurl provides it; "HTTP/…" begins a new head. Fails with
 * ERROR_LIMIT or ERROR_PROTOCOL.
 */
bool reply_add_line(struct reply *reply, struct span line, struct error *err) ATTR_NODISCARD;

/* Whether a body can follow. `is_head`: the request's method was HEAD. */
bool reply_has_body(const struct reply *reply, bool is_head);

/* Appends the head for the cell to `out`, which needs room for REPLY_HEAD_MAX + 256 bytes. */
void reply_write_head(const struct reply *reply, bool is_head, struct buf *out);

/* Appends an answer of our own with a text that says what is wrong. `out` needs room for it. */
void reply_write_error(int status, const char *text, struct buf *out);

/* Appends a chunk of the body; an empty chunk ends the body. */
void reply_write_chunk(struct span bytes, struct buf *out);

#endif
