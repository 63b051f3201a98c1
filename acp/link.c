/* SPDX-License-Identifier: MIT */
#include "acp/link.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "base/fd.h"

/*
 * A message larger than the pipe costs two context switches each time the pipe fills. So the first
 * message of this size enlarges the pipe, if the link may do that. Other links keep the small pipe,
 * because the kernel limits the memory of all pipes of a user.
 */
enum { LARGE = 64 * 1024 };

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events);
static void on_writable(struct ev_loop *loop, struct ev_io *watcher, int events);

void link_init(struct link *link, const struct link_config *config)
{
	*link = (struct link){.config = *config, .in = -1, .out = -1};
	link->frames = frame_reader_create(config->places, config->max_message);
	outbox_init(&link->ahead);
	outbox_init(&link->queue);
	ev_io_init(&link->reader, on_readable, -1, EV_READ);
	ev_io_init(&link->writer, on_writable, -1, EV_WRITE);
	ev_set_priority(&link->writer, EV_MINPRI);
}

void link_connect(struct link *link, int in, int out)
{
	assert(!link->is_closed && link->in == -1 && link->out == -1);
	link->in = in;
	link->out = out;
	if (in != -1) {
		ev_io_set(&link->reader, in, EV_READ);
		ev_io_start(link->config.loop, &link->reader);
	}
	if (out != -1) {
		ev_io_set(&link->writer, out, EV_WRITE);
		ev_feed_event(link->config.loop, &link->writer, EV_WRITE);
	}
}

static void close_output(struct link *link)
{
	ev_io_stop(link->config.loop, &link->writer);
	outbox_finish(&link->ahead);
	outbox_finish(&link->queue);
	fd_close(&link->out);
}

void link_close(struct link *link)
{
	if (link->is_closed) {
		return;
	}
	link->is_closed = true;
	ev_io_stop(link->config.loop, &link->reader);
	fd_close(&link->in);
	close_output(link);
}

void link_finish(struct link *link)
{
	assert(link->is_closed);
	frame_reader_destroy(link->frames);
	link->frames = NULL;
}

/* ---- input ---- */

/* Passes on the received frames, until none is left, one is refused or the link is closed. */
static void deliver(struct link *link)
{
	while (!link->is_closed && !link->is_paused) {
		if (!link->has_frame) {
			link->has_frame =
				link->has_ended
					? frame_reader_next(link->frames, &link->frame) ||
						  frame_reader_end(link->frames, &link->frame)
					: frame_reader_next(link->frames, &link->frame);
		}
		if (!link->has_frame) {
			return;
		}
		if (link->config.listener->on_frame(link->config.data, &link->frame)) {
			link->has_frame = false;
		} else {
			link->is_paused = true;
			ev_io_stop(link->config.loop, &link->reader);
		}
	}
}

static void note_failure(struct link *link, const struct error *err)
{
	if (link->failure.code == ERROR_NONE) {
		link->failure = *err;
	}
}

const struct error *link_failure(const struct link *link)
{
	return link->failure.code != ERROR_NONE ? &link->failure : NULL;
}

static void tell_end(struct link *link)
{
	if (link->is_closed || link->is_paused || !link->has_ended || link->end_was_told) {
		return;
	}
	link->end_was_told = true;
	ev_io_stop(link->config.loop, &link->reader);
	struct error err;
	if (link->read_errno != 0) {
		error_set_errno(&err, link->read_errno, "reading");
		note_failure(link, &err);
	}
	link->config.listener->on_end(link->config.data, link->read_errno != 0 ? &err : NULL);
}

static void grow(const struct link *link, int fd, bool *is_grown)
{
	if (link->config.may_grow_pipes && !*is_grown) {
		*is_grown = true;
		fd_grow_pipe(fd);
	}
}

/* One read; false if there is nothing more to read in this turn. */
static bool read_once(struct link *link)
{
	size_t room;
	char *space = frame_reader_space(link->frames, &room);
	ssize_t got = read(link->in, space, room);
	if (got > 0) {
		frame_reader_fed(link->frames, (size_t)got);
		if (got >= LARGE) {
			grow(link, link->in, &link->in_is_grown);
		}
		link->read_bytes += (size_t)got;
		return (size_t)got == room;
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		return false;
	}
	/* A socket returns ECONNRESET if its peer closed it with unread data. */
	link->read_errno = got < 0 && errno != ECONNRESET ? errno : 0;
	link->has_ended = true;
	return false;
}

static void read_some(struct link *link)
{
	bool more = true;
	for (int i = 0; i < LINK_READS_A_TURN && more; i++) {
		if (link->is_closed || link->is_paused || link->has_ended) {
			return;
		}
		more = read_once(link);
		deliver(link);
	}
	tell_end(link);
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct link *link = CONTAINER_OF(watcher, struct link, reader);
	if (link->is_paused || link->has_ended || link->has_frame) {
		deliver(link);
		tell_end(link);
		return;
	}
	read_some(link);
}

void link_resume(struct link *link)
{
	if (!link->is_paused || link->is_closed) {
		return;
	}
	link->is_paused = false;
	if (!link->has_ended) {
		ev_io_start(link->config.loop, &link->reader);
	}
	/* The current frame is passed on from the loop, never from this function. */
	ev_feed_event(link->config.loop, &link->reader, EV_READ);
}

bool link_is_paused(const struct link *link)
{
	return link->is_paused;
}

/* ---- output ---- */

bool link_is_over(const struct link *link)
{
	return link_queued(link) > link->config.max_queue;
}

size_t link_queued(const struct link *link)
{
	return link->ahead.queued + link->queue.queued;
}

uint64_t link_written(const struct link *link)
{
	return link->ahead.written + link->queue.written;
}

static void broken(struct link *link, const struct error *err)
{
	link->is_broken = true;
	if (err->code != ERROR_UNAVAILABLE) {
		note_failure(link, err);
	}
	close_output(link);
	link->config.listener->on_broken(link->config.data, err);
}

static void output_is_empty(struct link *link)
{
	ev_io_stop(link->config.loop, &link->writer);
	if (link->is_finishing && link->queue.queued == 0) {
		close_output(link);
		link->config.listener->on_flushed(link->config.data);
	}
}

/* The last step of a flush, because the listener may send. */
static void tell_drained(struct link *link)
{
	bool is_drained = link->was_over && link_queued(link) <= link->config.max_queue / 2;
	if (is_drained && !link->is_closed && !link->is_broken) {
		link->was_over = false;
		link->config.listener->on_drained(link->config.data);
	}
}

static void flush(struct link *link)
{
	struct error err;
	enum outbox_state state = outbox_write(&link->ahead, link->out, &err);
	if (state == OUTBOX_EMPTY && !link->is_held) {
		state = outbox_write(&link->queue, link->out, &err);
	}
	switch (state) {
	case OUTBOX_EMPTY:
		output_is_empty(link);
		break;
	case OUTBOX_BLOCKED:
		if (link_queued(link) >= LARGE) {
			grow(link, link->out, &link->out_is_grown);
		}
		ev_io_start(link->config.loop, &link->writer);
		break;
	case OUTBOX_BROKEN:
		broken(link, &err);
		break;
	}
	tell_drained(link);
}

static void on_writable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	flush(CONTAINER_OF(watcher, struct link, writer));
}

static bool takes_output(const struct link *link)
{
	return !link->is_closed && !link->is_broken && !link->is_finishing;
}

/* A message was queued: it is written at the end of this turn, unless the writer waits already. */
static void queued(struct link *link)
{
	link->was_over = link->was_over || link_is_over(link);
	if (link->out != -1 && !ev_is_active(&link->writer)) {
		ev_feed_event(link->config.loop, &link->writer, EV_WRITE);
	}
}

void link_send(struct link *link, struct span message)
{
	if (takes_output(link)) {
		outbox_copy(&link->queue, message, NULL);
		queued(link);
	}
}

void link_send_taken(struct link *link, struct buf *message)
{
	if (message->len < LINK_MOVE_MIN || !takes_output(link)) {
		link_send(link, buf_span(message));
		buf_finish(message);
		return;
	}
	outbox_move(&link->queue, message, NULL);
	queued(link);
}

void link_send_ahead(struct link *link, struct span message)
{
	if (takes_output(link)) {
		outbox_copy(&link->ahead, message, NULL);
		queued(link);
	}
}

bool link_forward(struct link *link, struct frame_reader *from, const struct frame *frame,
	struct splice *splice, struct error *err)
{
	if (splice && !splice_seal(splice, frame->bytes.len, err)) {
		return false;
	}
	if (!takes_output(link)) {
		return true;
	}
	if (frame->bytes.len < LINK_MOVE_MIN) {
		outbox_copy(&link->queue, frame->bytes, splice);
	} else {
		struct buf body;
		buf_init(&body, SIZE_MAX / 2);
		frame_reader_take(from, &body);
		outbox_move(&link->queue, &body, splice);
	}
	queued(link);
	return true;
}

void link_hold(struct link *link)
{
	link->is_held = true;
}

void link_release(struct link *link)
{
	link->is_held = false;
	queued(link);
}

void link_finish_output(struct link *link)
{
	if (!takes_output(link)) {
		return;
	}
	link->is_finishing = true;
	if (link->out != -1 && !ev_is_active(&link->writer)) {
		ev_feed_event(link->config.loop, &link->writer, EV_WRITE);
	}
}
