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
 * Outgoing messages, in order, each followed by a newline. Small messages are copied together, so
 * that one write sends many. Large messages are never copied: the outbox keeps the memory in which
 * they arrived, and their edits.
 */
enum {
	OUTBOX_CHUNK_SIZE = 64 * 1024, // small messages copied together
	OUTBOX_PIECES_MAX = 64,        // pieces given to one writev
};

struct outbox {
	struct list chunks; // of struct outbox_chunk (private), oldest first
	size_t queued;      // bytes not yet written
	uint64_t written;   // bytes written since the start
};

enum outbox_state { OUTBOX_EMPTY, OUTBOX_BLOCKED, OUTBOX_BROKEN };

void outbox_init(struct outbox *outbox);
void outbox_finish(struct outbox *outbox); // drops unwritten bytes

/* Copies a message and its edits (sealed); `splice` may be NULL. */
void outbox_copy(struct outbox *outbox, struct span message, const struct splice *splice);

/*
 * Takes the memory of a message and of its edits (sealed; may be NULL); both are as new afterwards.
 */
void outbox_move(struct outbox *outbox, struct buf *message, struct splice *splice);

/*
 * Writes until the outbox is empty (EMPTY), the file descriptor would block (BLOCKED), or a write
 * failed (BROKEN). After BROKEN, err is ERROR_UNAVAILABLE if nobody reads any more, else
 * ERROR_SYSTEM.
 */
enum outbox_state outbox_write(struct outbox *outbox, int fd, struct error *err);

#endif
