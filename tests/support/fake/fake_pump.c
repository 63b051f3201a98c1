/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "tests/support/fake/internal.h"

enum { PIECES_A_TURN = 16, PIECE_MAX = 4096 };

/*
 * From a process's output to the caller, in packets (pipe(7), O_DIRECT), so
 * that each read of the caller's gets one piece and never two.
 */
struct fake_pump {
	struct list link; // fake_sandbox.pumps
	struct ev_loop *loop;
	ev_io readable;
	ev_io writable;
	int from;
	int to;
	size_t chunk;
	unsigned random; // sizes of the pieces: the same in every run
	char data[PIECE_MAX];
	size_t len; // bytes waiting to be written
};

static void pump_free(struct fake_pump *pump)
{
	ev_io_stop(pump->loop, &pump->readable);
	ev_io_stop(pump->loop, &pump->writable);
	fd_close(&pump->from);
	fd_close(&pump->to);
	list_remove(&pump->link);
	free(pump);
}

static size_t next_size(struct fake_pump *pump)
{
	pump->random = pump->random * 1664525U + 1013904223U;
	return 1 + (pump->random >> 8) % pump->chunk;
}

enum progress { PROGRESS_ON, PROGRESS_WAIT, PROGRESS_OVER };

static enum progress take(struct fake_pump *pump)
{
	ssize_t count = read(pump->from, pump->data, next_size(pump));
	if (count < 0) {
		return errno == EAGAIN || errno == EINTR ? PROGRESS_WAIT : PROGRESS_OVER;
	}
	pump->len = (size_t)count;
	return count == 0 ? PROGRESS_OVER : PROGRESS_ON;
}

static enum progress give(struct fake_pump *pump)
{
	ssize_t count = write(pump->to, pump->data, pump->len);
	if (count < 0) {
		return errno == EAGAIN || errno == EINTR ? PROGRESS_WAIT : PROGRESS_OVER;
	}
	pump->len = 0; // a packet is taken as a whole or not at all
	return PROGRESS_ON;
}

static void turn(struct fake_pump *pump)
{
	enum progress progress = PROGRESS_ON;
	for (int i = 0; i < PIECES_A_TURN && progress == PROGRESS_ON; i++) {
		progress = pump->len > 0 ? give(pump) : take(pump);
	}
	if (progress == PROGRESS_OVER) {
		pump_free(pump);
		return;
	}
	ev_io *wanted = pump->len > 0 ? &pump->writable : &pump->readable;
	ev_io *other = pump->len > 0 ? &pump->readable : &pump->writable;
	ev_io_stop(pump->loop, other);
	ev_io_start(pump->loop, wanted);
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	turn(CONTAINER_OF(io, struct fake_pump, readable));
}

static void on_writable(struct ev_loop *loop, ev_io *io, int events)
{
	turn(CONTAINER_OF(io, struct fake_pump, writable));
}

int fake_pump_start(struct fake_sandbox *sandbox, int from, size_t chunk, struct error *err)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "fake: making a pipe");
		fd_close(&from);
		return -1;
	}
	struct fake_pump *pump = mem_alloc_zero(sizeof(*pump));
	pump->loop = sandbox->host.sandbox.loop;
	pump->from = from;
	pump->to = fds[1];
	pump->chunk = chunk < PIECE_MAX ? chunk : PIECE_MAX;
	ev_io_init(&pump->readable, on_readable, from, EV_READ);
	ev_io_init(&pump->writable, on_writable, fds[1], EV_WRITE);
	ev_io_start(pump->loop, &pump->readable);
	list_append(&sandbox->pumps, &pump->link);
	return fds[0];
}

void fake_pumps_stop(struct fake_sandbox *sandbox)
{
	LIST_FOR_EACH(pump, &sandbox->pumps, struct fake_pump, link) {
		pump_free(pump);
	}
}
