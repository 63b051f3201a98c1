/* SPDX-License-Identifier: MIT */
#include "acp/outbox.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/uio.h>

static const char newline = '\n';

/*
 * Either several small messages, copied into body, or one large message: body and its pieces, which
 * point into body and splice.
 */
struct outbox_chunk {
	struct list link; // outbox.chunks
	struct buf body;
	struct splice splice;
	struct iovec *pieces; // owned; NULL for copied messages
	size_t piece_count;
	size_t piece_at; // the first that is not completely written
};

void outbox_init(struct outbox *outbox)
{
	list_init(&outbox->chunks);
	outbox->queued = 0;
}

static struct outbox_chunk *chunk_create(struct outbox *outbox)
{
	struct outbox_chunk *chunk = mem_alloc_zero(sizeof(*chunk));
	buf_init(&chunk->body, SIZE_MAX / 2);
	splice_init(&chunk->splice);
	list_append(&outbox->chunks, &chunk->link);
	return chunk;
}

static void chunk_destroy(struct outbox_chunk *chunk)
{
	list_remove(&chunk->link);
	buf_finish(&chunk->body);
	splice_finish(&chunk->splice);
	free(chunk->pieces);
	free(chunk);
}

void outbox_finish(struct outbox *outbox)
{
	LIST_FOR_EACH(chunk, &outbox->chunks, struct outbox_chunk, link) {
		chunk_destroy(chunk);
	}
	outbox->queued = 0;
}

static bool chunk_has_room(const struct outbox_chunk *chunk)
{
	return !chunk->pieces && chunk->body.head + chunk->body.len < OUTBOX_CHUNK_SIZE;
}

void outbox_copy(struct outbox *outbox, struct span message, const struct splice *splice)
{
	struct outbox_chunk *chunk = NULL;
	if (!list_is_empty(&outbox->chunks)) {
		chunk = LIST_ENTRY(outbox->chunks.prev, struct outbox_chunk, link);
	}
	if (!chunk || !chunk_has_room(chunk)) {
		chunk = chunk_create(outbox);
	}
	size_t before = chunk->body.len;
	bool ok = splice ? splice_append(splice, message, &chunk->body, NULL)
	                 : buf_append(&chunk->body, message, NULL);
	ok = ok && buf_append(&chunk->body, (struct span){&newline, 1}, NULL);
	if (!ok) {
		abort(); // no message reaches the body's maximum
	}
	outbox->queued += chunk->body.len - before;
}

void outbox_move(struct outbox *outbox, struct buf *message, struct splice *splice)
{
	struct outbox_chunk *chunk = chunk_create(outbox);
	buf_move(&chunk->body, message);
	buf_fit(&chunk->body, OUTBOX_CHUNK_SIZE);
	if (splice) {
		struct splice empty = chunk->splice;
		chunk->splice = *splice;
		*splice = empty;
	}
	size_t most = splice_piece_count(&chunk->splice) + 1;
	chunk->pieces = mem_alloc(most * sizeof(*chunk->pieces));
	chunk->piece_count = splice_pieces(&chunk->splice, buf_span(&chunk->body), chunk->pieces);
	chunk->pieces[chunk->piece_count++] = (struct iovec){(void *)&newline, 1};
	outbox->queued += splice_length(&chunk->splice, chunk->body.len) + 1;
}

/* The unwritten pieces of the oldest chunks; returns how many. */
static int gather(const struct outbox *outbox, struct iovec pieces[OUTBOX_PIECES_MAX])
{
	int count = 0;
	LIST_FOR_EACH(chunk, &outbox->chunks, struct outbox_chunk, link) {
		if (count == OUTBOX_PIECES_MAX) {
			break;
		}
		if (!chunk->pieces) {
			struct span body = buf_span(&chunk->body);
			pieces[count++] = (struct iovec){(void *)body.data, body.len};
			continue;
		}
		for (size_t i = chunk->piece_at;
			i < chunk->piece_count && count < OUTBOX_PIECES_MAX; i++) {
			pieces[count++] = chunk->pieces[i];
		}
	}
	return count;
}

static size_t pieces_size(const struct iovec *pieces, int count)
{
	size_t size = 0;
	for (int i = 0; i < count; i++) {
		size += pieces[i].iov_len;
	}
	return size;
}

/* Removes written bytes from a chunk; returns how many are left over for the next chunk. */
static size_t chunk_consume(struct outbox_chunk *chunk, size_t written, bool *out_empty)
{
	if (!chunk->pieces) {
		size_t take = written < chunk->body.len ? written : chunk->body.len;
		buf_consume(&chunk->body, take);
		*out_empty = chunk->body.len == 0;
		return written - take;
	}
	while (chunk->piece_at < chunk->piece_count) {
		struct iovec *piece = &chunk->pieces[chunk->piece_at];
		if (written < piece->iov_len) {
			piece->iov_base = (char *)piece->iov_base + written;
			piece->iov_len -= written;
			*out_empty = false;
			return 0;
		}
		written -= piece->iov_len;
		chunk->piece_at++;
	}
	*out_empty = true;
	return written;
}

static void consume(struct outbox *outbox, size_t written)
{
	outbox->queued -= written;
	LIST_FOR_EACH(chunk, &outbox->chunks, struct outbox_chunk, link) {
		bool is_empty = false;
		written = chunk_consume(chunk, written, &is_empty);
		if (!is_empty) {
			break;
		}
		chunk_destroy(chunk);
	}
}

enum outbox_state outbox_write(struct outbox *outbox, int fd, struct error *err)
{
	while (!list_is_empty(&outbox->chunks)) {
		struct iovec pieces[OUTBOX_PIECES_MAX];
		int count = gather(outbox, pieces);
		size_t size = pieces_size(pieces, count);
		ssize_t written = writev(fd, pieces, count);
		if (written >= 0) {
			consume(outbox, (size_t)written);
			outbox->written += (size_t)written;
			if ((size_t)written < size) {
				return OUTBOX_BLOCKED; // full: another call would return EAGAIN
			}
		} else if (errno == EAGAIN) {
			return OUTBOX_BLOCKED;
		} else if (errno != EINTR) {
			bool is_gone = errno == EPIPE || errno == ECONNRESET;
			error_set_errno(err, errno, "writing");
			err->code = is_gone ? ERROR_UNAVAILABLE : ERROR_SYSTEM;
			return OUTBOX_BROKEN;
		}
	}
	return OUTBOX_EMPTY;
}
