/* SPDX-License-Identifier: MIT */
#include "providers/local/net/pipe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/io.h"

enum { TURN_MAX = 4 }; // buffers to move before others get their turn

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

void pipe_insert(struct pipe *pipe, struct span bytes)
{
	struct span left = pipe_span(pipe);
	assert(pipe->data && bytes.len + left.len <= PIPE_SIZE);
	memmove(pipe->data + bytes.len, left.data, left.len);
	memcpy(pipe->data, bytes.data, bytes.len);
	pipe->at = 0;
	pipe->len = bytes.len + left.len;
}

/* The bytes stay as they are: only one reading of them is possible. */
static bool belong(struct request_body *body, struct span bytes)
{
	char content[4096]; // not needed
	while (bytes.len > 0) {
		size_t used = 0;
		size_t len;
		enum request_step step =
			request_body_read(body, bytes, &used, content, sizeof(content), &len);
		if (step == REQUEST_WRONG || used == 0) {
			return false;
		}
		bytes = (struct span){bytes.data + used, bytes.len - used};
	}
	return true;
}

bool pipe_limit(struct pipe *pipe, struct request_body *body)
{
	pipe->body = body;
	return belong(body, pipe_span(pipe));
}

/* Returns whether more may follow; sets *is_broken if the connection is broken. */
static bool fill(struct pipe *pipe, int from, size_t most, bool *is_broken)
{
	make_room(pipe);
	size_t room = most - pipe->len;
	ssize_t got = recv(from, pipe->data + pipe->len, room, MSG_DONTWAIT);
	if (got < 0) {
		*is_broken = !io_is_transient(errno);
		return false;
	}
	struct span bytes = {pipe->data + pipe->len, (size_t)got};
	if (pipe->body && !belong(pipe->body, bytes)) {
		*is_broken = true;
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

bool pipe_fill(struct pipe *pipe, int from, size_t most)
{
	bool is_broken = false;
	if (pipe_wants_read(pipe) && pipe->len < most) {
		(void)fill(pipe, from, most, &is_broken);
	}
	return !is_broken;
}

bool pipe_move(struct pipe *pipe, int from, int to)
{
	bool is_broken = false;
	bool has_more = true;
	for (int i = 0; i < TURN_MAX && has_more && !is_broken; i++) {
		has_more = pipe_wants_read(pipe) && fill(pipe, from, PIPE_SIZE, &is_broken);
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
