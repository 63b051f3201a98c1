/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/io.h"
#include "providers/ssh/host_impl.h"

/*
 * Moves bytes between a process's channel and the caller's pipes. Buffers at most one piece of
 * input: output that a pipe does not take stays in the channel, which slows down the server.
 */
enum { PIECE_MAX = 64 * 1024 };

/* ---- output ---- */

static void close_out(struct ssh_process *process, enum ssh_stream stream)
{
	if (process->out[stream] >= 0) {
		ev_io_stop(process->host->loop, &process->out_io[stream]);
		fd_close(&process->out[stream]);
	}
}

/*
 * Nobody reads stdout any more, and the process still writes. With a pipe it would get SIGPIPE;
 * here the only way is to close the whole channel.
 */
static void cut(struct ssh_process *process)
{
	struct ssh_slot *slot = process->slot;
	process->slot = NULL;
	slot->process = NULL;
	ssh_process_close_fds(process);
	ssh_slot_close(slot);
}

size_t ssh_process_on_bytes(struct ssh_process *process, enum ssh_stream stream, struct span bytes)
{
	size_t taken = 0;
	while (taken < bytes.len && process->out[stream] >= 0) {
		ssize_t count = write(process->out[stream], bytes.data + taken, bytes.len - taken);
		if (count >= 0) {
			taken += (size_t)count;
		} else if (errno == EAGAIN) {
			ev_io_start(process->host->loop, &process->out_io[stream]);
			return taken;
		} else if (errno != EINTR) {
			close_out(process, stream);
			if (stream == SSH_STREAM_OUT && process->slot) {
				cut(process);
			}
		}
	}
	return bytes.len; // output that nobody reads is dropped
}

void ssh_process_on_eof(struct ssh_process *process, enum ssh_stream stream)
{
	close_out(process, stream);
}

static void resume(struct ssh_process *process, enum ssh_stream stream)
{
	struct ssh_host *host = process->host;
	ev_io_stop(host->loop, &process->out_io[stream]);
	bool is_apart = process->is_apart && stream == SSH_STREAM_ERR;
	struct ssh_slot *slot = is_apart ? process->err_slot : process->slot;
	if (slot) {
		ssh_host_enter(host);
		ssh_channel_resume(slot->channel, is_apart ? SSH_STREAM_OUT : stream);
		ssh_host_leave(host);
	}
}

static void on_out_writable(struct ev_loop *loop, ev_io *io, int events)
{
	resume(CONTAINER_OF(io, struct ssh_process, out_io[SSH_STREAM_OUT]), SSH_STREAM_OUT);
}

static void on_err_writable(struct ev_loop *loop, ev_io *io, int events)
{
	resume(CONTAINER_OF(io, struct ssh_process, out_io[SSH_STREAM_ERR]), SSH_STREAM_ERR);
}

/* ---- input ---- */

static void close_in(struct ssh_process *process)
{
	if (process->in >= 0) {
		ev_io_stop(process->host->loop, &process->in_io);
		fd_close(&process->in);
	}
}

static void on_in_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct ssh_process *process = CONTAINER_OF(io, struct ssh_process, in_io);
	char piece[PIECE_MAX];
	ssize_t count = read(process->in, piece, sizeof(piece));
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	if (count <= 0) {
		close_in(process);
		ssh_slot_send_eof(process->slot);
	} else if (!ssh_slot_send(process->slot, (struct span){piece, (size_t)count})) {
		ev_io_stop(loop, io); // until there is room
	}
}

void ssh_process_read_stdin(struct ssh_process *process)
{
	if (process->in >= 0) {
		ev_io_start(process->host->loop, &process->in_io);
	}
}

void ssh_process_on_room(struct ssh_process *process)
{
	ssh_process_read_stdin(process);
}

/* ---- both ---- */

/* Makes a pipe. Its end number `own` is for the caller, the other one is ours; neither blocks. */
static bool make_pipe(int own, int *out_own, int *out_ours, struct error *err)
{
	int fds[2];
	if (!fd_pipe(fds, err)) {
		return false;
	}
	*out_own = fds[own];
	*out_ours = fds[1 - own];
	return fd_set_nonblock(fds[0], true, err) && fd_set_nonblock(fds[1], true, err);
}

bool ssh_process_connect(
	struct ssh_process *process, const struct exec_spec *spec, struct error *err)
{
	int *own = process->exec.fds;
	ev_init(&process->in_io, on_in_readable);
	ev_init(&process->out_io[SSH_STREAM_OUT], on_out_writable);
	ev_init(&process->out_io[SSH_STREAM_ERR], on_err_writable);
	if ((spec->want_stdin && !make_pipe(1, &own[0], &process->in, err)) ||
		!make_pipe(0, &own[1], &process->out[SSH_STREAM_OUT], err) ||
		(!spec->merge_stderr &&
			!make_pipe(0, &own[2], &process->out[SSH_STREAM_ERR], err))) {
		return false;
	}
	ev_io_set(&process->in_io, process->in, EV_READ);
	ev_io_set(&process->out_io[SSH_STREAM_OUT], process->out[SSH_STREAM_OUT], EV_WRITE);
	ev_io_set(&process->out_io[SSH_STREAM_ERR], process->out[SSH_STREAM_ERR], EV_WRITE);
	return true;
}

void ssh_process_close_main(struct ssh_process *process)
{
	if (process->host) {
		close_in(process);
		close_out(process, SSH_STREAM_OUT);
		if (!process->err_slot) {
			close_out(process, SSH_STREAM_ERR);
		}
	}
}

void ssh_process_close_fds(struct ssh_process *process)
{
	if (process->host) {
		close_in(process);
		close_out(process, SSH_STREAM_OUT);
		close_out(process, SSH_STREAM_ERR);
	}
}
