/* SPDX-License-Identifier: MIT */
#include "providers/local/net/pipe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/io.h"

enum { TURN_MAX = 4 }; // buffers that are moved before others get their turn

void pipe_finish(struct pipe *pipe)
{
	free(pipe->data);
	*pipe = (struct pipe){.data = NULL};
}

struct span pipe_span(const struct pipe *pipe)
{
	return (struct span){pipe->data ? pipe->data + pipe->at : NULL, pipe->len - pipe->at};
}

void pipe_skip(struct pipe *pipe, size_t count)
{
	assert(count <= pipe->len - pipe->at);
	pipe->at += count;
}

bool pipe_wants_write(const struct pipe *pipe)
{
	return pipe->at < pipe->len;
}

static void make_room(struct pipe *pipe)
{
	if (!pipe->data) {
		pipe->data = mem_alloc(PIPE_SIZE);
	}
	if (!pipe_wants_write(pipe) && (!pipe->keeps || pipe->len == PIPE_SIZE)) {
		pipe->at = 0;
		pipe->len = 0;
		pipe->keeps = false;
	}
}

bool pipe_wants_read(const struct pipe *pipe)
{
	return !pipe->has_ended && (pipe->len < PIPE_SIZE || !pipe_wants_write(pipe));
}

/* Returns whether there may be more; *is_broken where there never will be. */
static bool fill(struct pipe *pipe, int from, bool *is_broken)
{
	make_room(pipe);
	size_t room = PIPE_SIZE - pipe->len;
	ssize_t got = recv(from, pipe->data + pipe->len, room, MSG_DONTWAIT);
	if (got < 0) {
		*is_broken = !io_is_transient(errno);
		return false;
	}
	pipe->len += (size_t)got;
	pipe->has_ended = got == 0;
	return (size_t)got == room;
}

static bool drain(struct pipe *pipe, int to, bool *is_broken)
{
	size_t left = pipe->len - pipe->at;
	ssize_t sent = send(to, pipe->data + pipe->at, left, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0) {
		*is_broken = !io_is_transient(errno);
		return false;
	}
	pipe->at += (size_t)sent;
	return (size_t)sent == left;
}

bool pipe_fill(struct pipe *pipe, int from)
{
	bool is_broken = false;
	if (pipe_wants_read(pipe)) {
		(void)fill(pipe, from, &is_broken);
	}
	return !is_broken;
}

bool pipe_move(struct pipe *pipe, int from, int to)
{
	bool is_broken = false;
	bool has_more = true;
	for (int i = 0; i < TURN_MAX && has_more && !is_broken; i++) {
		has_more = pipe_wants_read(pipe) && fill(pipe, from, &is_broken);
		if (!is_broken && pipe_wants_write(pipe)) {
			has_more = drain(pipe, to, &is_broken) && has_more;
		}
	}
	if (!is_broken && pipe->has_ended && !pipe->is_closed && !pipe_wants_write(pipe)) {
		shutdown(to, SHUT_WR);
		pipe->is_closed = true;
	}
	return !is_broken;
}
