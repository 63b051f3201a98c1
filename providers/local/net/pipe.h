/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_PIPE_H
#define PROVIDERS_LOCAL_NET_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/span.h"

/*
 * One direction of a relayed connection: what one socket has said and the other has not taken. The
 * memory is there from the first byte on. Once it is full, nothing is read until all of it is
 * written, so that a slow reader slows down its writer. Zero-initialise.
 */
enum { PIPE_SIZE = 64 << 10 };

struct pipe {
	char *data;     // owned; NULL: nothing was read so far
	size_t at;      // written
	size_t len;     // read
	bool keeps;     // the first PIPE_SIZE bytes stay in `data`; false once others follow
	bool has_ended; // the writer has said all
	bool is_closed; // and the other side was told
};

void pipe_finish(struct pipe *pipe);

struct span pipe_span(const struct pipe *pipe);  // what is left to write, borrowed
void pipe_skip(struct pipe *pipe, size_t count); // of it, from the front

/* Reads what is there, once. False: the connection is broken. */
bool pipe_fill(struct pipe *pipe, int from) ATTR_NODISCARD;

/*
 * Moves what can be moved without waiting, from a socket to another one; the end of what was said,
 * too. Others get their turn after some of it. False: the connection is broken.
 */
bool pipe_move(struct pipe *pipe, int from, int to) ATTR_NODISCARD;

bool pipe_wants_read(const struct pipe *pipe);
bool pipe_wants_write(const struct pipe *pipe);

#endif
