/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_PIPE_H
#define PROVIDERS_LOCAL_NET_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "providers/local/request.h"

/*
 * One direction of a relayed connection: bytes read from one socket and not yet written to the
 * other. The memory is allocated with the first byte. When it is full, it is emptied completely
 * before more is read, so that a slow reader slows down the writer. Zero-initialise.
 */
enum { PIPE_SIZE = 64 << 10 };

struct pipe {
	char *data; // owned; NULL: no bytes were read yet
	size_t at;  // bytes written
	size_t len; // bytes read
	bool keeps; // keep the first PIPE_SIZE bytes in `data`; false after more have come
	struct request_body *body; // see pipe_limit; NULL: any bytes may be read
	bool has_ended;            // the reading side is at its end
	bool is_closed;            // the other side knows about the end
};

void pipe_finish(struct pipe *pipe);

struct span pipe_span(const struct pipe *pipe);  // bytes left to write, borrowed
void pipe_skip(struct pipe *pipe, size_t count); // removes bytes from its front

/* Puts bytes before those left to write. Together they must fit, which is asserted. */
void pipe_insert(struct pipe *pipe, struct span bytes);

/*
 * From now on, only these bytes of a request's body may be read; others break the connection. The
 * body is borrowed. False: bytes that were read before do not belong to it.
 */
bool pipe_limit(struct pipe *pipe, struct request_body *body) ATTR_NODISCARD;

/*
 * Reads once what is available, at most until the pipe has `most` bytes (1 to PIPE_SIZE). False:
 * the connection is broken.
 */
bool pipe_fill(struct pipe *pipe, int from, size_t most) ATTR_NODISCARD;

/*
 * Moves bytes from one socket to another as far as possible without waiting, and then also the end
 * of the stream. Stops after some data, so that other connections get their turn. False: the
 * connection is broken.
 */
bool pipe_move(struct pipe *pipe, int from, int to) ATTR_NODISCARD;

bool pipe_wants_read(const struct pipe *pipe);
bool pipe_wants_write(const struct pipe *pipe);

#endif
