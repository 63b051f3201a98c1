/* SPDX-License-Identifier: MIT */
#ifndef ACP_OUTBOX_H
#define ACP_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp/splice.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/span.h"

/*
 * Messages on their way out, in order, each followed by a newline. Small ones
 * are copied together, so that many leave in one write; large ones are held as
 * the memory they came in plus their edits, and are never copied.
 */
enum {
	OUTBOX_CHUNK_SIZE = 64 * 1024, // small messages copied together
	OUTBOX_PIECES_MAX = 64,        // pieces given to one writev
};

struct outbox {
	struct list chunks; // of struct outbox_chunk (private), oldest first
	size_t queued;      // bytes not yet written
	uint64_t written;   // bytes that were, since the start
};

enum outbox_state { OUTBOX_EMPTY, OUTBOX_BLOCKED, OUTBOX_BROKEN };

void outbox_init(struct outbox *outbox);
void outbox_finish(struct outbox *outbox); // forgets what was not written

/* Copies a message, with its edits (sealed) where splice is not NULL. */
void outbox_copy(struct outbox *outbox, struct span message, const struct splice *splice);

/*
 * Takes the memory of a message and of its edits (sealed; may be NULL); both
 * are as new afterwards.
 */
void outbox_move(struct outbox *outbox, struct buf *message, struct splice *splice);

/*
 * Writes until everything has left (EMPTY), the descriptor would block
 * (BLOCKED), or it failed (BROKEN; ERROR_UNAVAILABLE where nobody reads any
 * more, ERROR_SYSTEM otherwise).
 */
enum outbox_state outbox_write(struct outbox *outbox, int fd, struct error *err);

#endif
