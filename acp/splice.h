/* SPDX-License-Identifier: MIT */
#ifndef ACP_SPLICE_H
#define ACP_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

/*
 * A list of edits to a message: each replaces [start, end) of the original with other bytes; start
 * == end inserts. All bytes between the edits stay unchanged.
 */
enum {
	SPLICE_EDITS_MAX = 131072,
	SPLICE_BYTES_MAX = 4 * 1024 * 1024, // of all replacements in a message
};

struct splice_edit {
	size_t start;
	size_t end;
	size_t with; // offset into splice.bytes
	size_t with_len;
};

struct splice {
	struct splice_edit *edits; // owned
	size_t count;
	size_t capacity;
	struct buf bytes; // the replacements, one after another
};

void splice_init(struct splice *splice);
void splice_finish(struct splice *splice);
void splice_clear(struct splice *splice); // keeps small memory for the next message

/* Adds an edit, in any order; the bytes are copied. ERROR_LIMIT. */
bool splice_add(struct splice *splice, size_t start, size_t end, struct span with,
	struct error *err) ATTR_NODISCARD;

/*
 * Adds the edit that inserts `"name":value` as the first member of an object. `object` is a span of
 * the message's text. The name must need no escapes.
 */
bool splice_insert_member(struct splice *splice, struct span text, struct span object,
	const char *name, struct span value, struct error *err) ATTR_NODISCARD;

/*
 * Sorts the edits by place; insertions at one place keep the order in which they were added.
 * ERROR_PROTOCOL if two edits overlap or one lies outside of the message.
 */
bool splice_seal(struct splice *splice, size_t message_len, struct error *err) ATTR_NODISCARD;

/* After seal: the length of the spliced message. */
size_t splice_length(const struct splice *splice, size_t message_len);

/* After seal: the maximum number of pieces that splice_pieces writes. */
size_t splice_piece_count(const struct splice *splice);

/*
 * After seal: writes the spliced message as pieces for writev, none of them empty; they borrow from
 * message and splice. Returns how many it wrote.
 */
size_t splice_pieces(const struct splice *splice, struct span message, struct iovec *out_pieces);

/* After seal: appends the spliced message to a buffer. */
bool splice_append(const struct splice *splice, struct span message, struct buf *out,
	struct error *err) ATTR_NODISCARD;

#endif
