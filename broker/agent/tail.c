/* SPDX-License-Identifier: MIT */
#include "broker/agent/tail.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum {
	TAIL_READ_SIZE = 16 * 1024,
	TAIL_LINE_MAX = 2048,     // bytes of a line that are logged at once
	TAIL_CATCH_UP_READS = 64, // the last output of a dead process fits a pipe
};

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events);

void tail_init(struct tail *tail, struct ev_loop *loop, const char *subject, size_t keep,
	const struct secrets *secrets)
{
	*tail = (struct tail){
		.loop = loop, .fd = -1, .subject = subject, .keep = keep, .secrets = secrets};
	buf_init(&tail->line, TAIL_LINE_MAX);
	buf_init(&tail->last, 3 * keep);
	buf_init(&tail->told, 3 * keep);
	ev_io_init(&tail->reader, on_readable, -1, EV_READ);
}

void tail_start(struct tail *tail, int fd)
{
	tail->fd = fd;
	ev_io_set(&tail->reader, fd, EV_READ);
	ev_io_start(tail->loop, &tail->reader);
}

static void log_pending_line(struct tail *tail)
{
	if (tail->line.len > 0) {
		secrets_log_line(tail->secrets, tail->subject, buf_span(&tail->line), false);
		buf_clear(&tail->line);
	}
}

/* Logs a piece of a line that is too long, without its end, where a secret may begin. */
static void log_piece(struct tail *tail)
{
	struct span piece = buf_span(&tail->line);
	size_t begun = tail->secrets ? secrets_begun(tail->secrets, piece) : 0;
	if (begun >= TAIL_LINE_MAX / 2) { // of a secret as long as this, at most the end is logged
		begun = 0;
	}
	piece.len -= begun;
	secrets_log_line(tail->secrets, tail->subject, piece, false);
	buf_consume(&tail->line, piece.len);
}

static void take_lines(struct tail *tail, struct span bytes)
{
	while (bytes.len > 0) {
		const char *end = memchr(bytes.data, '\n', bytes.len);
		size_t len = end ? (size_t)(end - bytes.data) : bytes.len;
		size_t room = TAIL_LINE_MAX - tail->line.len;
		size_t take = len < room ? len : room;
		bool ok = buf_append(&tail->line, (struct span){bytes.data, take}, NULL);
		bool is_whole = end && take == len;
		if (!ok || is_whole) {
			log_pending_line(tail);
		} else if (tail->line.len == TAIL_LINE_MAX) {
			log_piece(tail);
		}
		size_t used = take + (is_whole ? 1 : 0);
		bytes = (struct span){bytes.data + used, bytes.len - used};
	}
}

/* Keeps twice as much as is returned, so that it does not begin inside a secret. */
static void keep_last(struct tail *tail, struct span bytes)
{
	size_t most = 2 * tail->keep;
	tail->is_told = false;
	if (bytes.len > most) {
		bytes = (struct span){bytes.data + bytes.len - most, most};
		tail->was_cut = true;
	}
	if (tail->last.len + bytes.len > tail->last.max) {
		buf_consume(&tail->last, tail->last.len - (most - bytes.len));
		tail->was_cut = true;
	}
	if (!buf_append(&tail->last, bytes, NULL)) {
		buf_clear(&tail->last);
	}
}

/* Reads once; false if there is nothing more. */
static bool read_once(struct tail *tail)
{
	char bytes[TAIL_READ_SIZE];
	ssize_t got = read(tail->fd, bytes, sizeof(bytes));
	if (got > 0) {
		struct span span = {bytes, (size_t)got};
		keep_last(tail, span);
		take_lines(tail, span);
		return true;
	}
	if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		log_pending_line(tail);
		ev_io_stop(tail->loop, &tail->reader);
		fd_close(&tail->fd);
	}
	return false;
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	read_once(CONTAINER_OF(watcher, struct tail, reader));
}

void tail_catch_up(struct tail *tail)
{
	for (int i = 0; i < TAIL_CATCH_UP_READS && tail->fd != -1; i++) {
		if (!read_once(tail)) {
			return;
		}
	}
}

/* Starts at the beginning of a line or, inside one long line, of a character. */
static struct span from_beginning(struct span text)
{
	enum { REST_MAX = 3 }; // bytes of a UTF-8 character after its first
	const char *line_end = memchr(text.data, '\n', text.len);
	size_t skip = 0;
	if (line_end && line_end + 1 < text.data + text.len) {
		skip = (size_t)(line_end + 1 - text.data);
	} else {
		while (skip < REST_MAX && skip < text.len && (text.data[skip] & 0xc0) == 0x80) {
			skip++;
		}
	}
	return (struct span){text.data + skip, text.len - skip};
}

struct span tail_span(struct tail *tail)
{
	if (!tail->is_told) { // masked before it is cut, so that no part of a secret stays
		buf_clear(&tail->told);
		tail->is_told = buf_append(&tail->told, buf_span(&tail->last), NULL);
		secrets_mask_text(tail->secrets, &tail->told, false);
	}
	struct span all = buf_span(&tail->told);
	if (all.len <= tail->keep && !tail->was_cut) {
		return all;
	}
	size_t skip = all.len > tail->keep ? all.len - tail->keep : 0;
	return from_beginning((struct span){all.data + skip, all.len - skip});
}

void tail_finish(struct tail *tail)
{
	if (tail->fd != -1) {
		log_pending_line(tail);
		ev_io_stop(tail->loop, &tail->reader);
		fd_close(&tail->fd);
	}
	buf_finish(&tail->line);
	buf_finish(&tail->last);
	buf_finish(&tail->told);
}
