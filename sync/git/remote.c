/* SPDX-License-Identifier: MIT */
#include "sync/git/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/point.h"

enum { PUMP_SIZE = 64 << 10, WORDS_MAX = 400 };

/* Copies bytes from one file descriptor to another; both are non-blocking. */
struct pump {
	struct remote *remote;
	ev_io from, to; // their fd is -1 once closed
	size_t at, len; // bytes that were read and not yet written
	char *data;     // owned, PUMP_SIZE bytes
};

struct remote {
	struct ev_loop *loop;
	struct exec *exec; // NULL without a script, or after its end
	struct pump in;    // from the work to the script
	struct pump out;   // from the script to the work
	ev_io words;       // the script's stderr
	char tail[WORDS_MAX + 1];
	ev_timer silence;
	struct sandbox *sandbox; // borrowed
	long long away_ms;       // sandbox_extend_timer
	struct remote_step step;
	struct error lost; // why both sides were stopped; ERROR_NONE: they were not

	struct pool_job job;
	struct remote_ends ends; // the worker's
	bool worked;             // the worker's
	struct error err;        // the worker's
};

/* ---- pumps ---- */

static void pump_close(struct pump *pump)
{
	io_close(pump->remote->loop, &pump->from);
	io_close(pump->remote->loop, &pump->to);
	pump->len = 0;
}

/* Closes the reader's end after everything was passed on. */
static void pump_step(struct pump *pump)
{
	struct ev_loop *loop = pump->remote->loop;
	if (pump->len > 0) {
		ev_io_stop(loop, &pump->from);
		ev_io_start(loop, &pump->to);
		return;
	}
	ev_io_stop(loop, &pump->to);
	if (pump->from.fd >= 0) {
		ev_io_start(loop, &pump->from);
	} else {
		io_close(loop, &pump->to);
	}
}

static void pump_on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct pump *pump = CONTAINER_OF(io, struct pump, from);
	ssize_t count = point("stream.reading") ? -1 : read(io->fd, pump->data, PUMP_SIZE);
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	ev_timer_again(loop, &pump->remote->silence);
	if (count <= 0) {
		io_close(loop, io);
	}
	pump->at = 0;
	pump->len = count > 0 ? (size_t)count : 0;
	pump_step(pump);
}

static void pump_on_writable(struct ev_loop *loop, ev_io *io, int events)
{
	struct pump *pump = CONTAINER_OF(io, struct pump, to);
	ssize_t count =
		point("stream.writing") ? -1 : write(io->fd, pump->data + pump->at, pump->len);
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	ev_timer_again(loop, &pump->remote->silence);
	if (count < 0) { // nobody reads any more: the writer must notice
		pump_close(pump);
		return;
	}
	pump->at += (size_t)count;
	pump->len -= (size_t)count;
	pump_step(pump);
}

static void pump_init(struct pump *pump, struct remote *remote)
{
	*pump = (struct pump){.remote = remote, .data = mem_alloc(PUMP_SIZE)};
	ev_io_init(&pump->from, pump_on_readable, -1, EV_READ);
	ev_io_init(&pump->to, pump_on_writable, -1, EV_WRITE);
}

static void pump_start(struct pump *pump, int from, int to)
{
	ev_io_set(&pump->from, from, EV_READ);
	ev_io_set(&pump->to, to, EV_WRITE);
	pump_step(pump);
}

/* ---- the script's stderr ---- */

static void on_words(struct ev_loop *loop, ev_io *io, int events)
{
	struct remote *remote = CONTAINER_OF(io, struct remote, words);
	char chunk[4096];
	ssize_t count = read(io->fd, chunk, sizeof(chunk));
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	if (count <= 0) {
		io_close(loop, io);
		return;
	}
	ev_timer_again(loop, &remote->silence);
	io_keep_words(remote->tail, WORDS_MAX, (struct span){chunk, (size_t)count});
}

/* ---- the end ---- */

static void cut_off(struct remote *remote)
{
	ev_timer_stop(remote->loop, &remote->silence);
	pump_close(&remote->in);
	pump_close(&remote->out);
	io_close(remote->loop, &remote->words);
	exec_destroy(remote->exec);
	remote->exec = NULL;
}

static void lose(struct remote *remote, const struct error *err)
{
	if (remote->lost.code == ERROR_NONE) {
		remote->lost = *err;
	}
	cut_off(remote);
}

void remote_leave(struct remote *remote)
{
	cut_off(remote);
	pool_leave(&remote->job);
}

/* A delay of our own does not count as the script's silence. */
static void on_silence(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct remote *remote = CONTAINER_OF(timer, struct remote, silence);
	struct error err;
	bool is_work_slow = remote->out.len > 0 || (remote->in.from.fd >= 0 && remote->in.len == 0);
	bool has_said_all = remote->out.from.fd < 0 && remote->in.from.fd < 0;
	if (is_work_slow || has_said_all) {
		ev_timer_again(loop, timer);
		return;
	}
	if (sandbox_extend_timer(remote->sandbox, timer, &remote->away_ms)) {
		return;
	}
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
		"syncing: nothing has come from the sandbox for %lld ms", remote->step.timeout_ms);
	lose(remote, &err);
}

static void on_run(struct pool_job *job)
{
	struct remote *remote = CONTAINER_OF(job, struct remote, job);
	remote->worked = remote->step.work(remote->step.data, &remote->ends, &remote->err);
	fd_close(&remote->ends.in);
	fd_close(&remote->ends.out);
}

static void remote_free(struct remote *remote)
{
	cut_off(remote);
	fd_close(&remote->ends.in);
	fd_close(&remote->ends.out);
	free(remote->in.data);
	free(remote->out.data);
	free(remote);
}

static void drop(struct pool_job *job)
{
	struct remote *remote = CONTAINER_OF(job, struct remote, job);
	struct remote_step step = remote->step;
	remote_free(remote);
	step.drop(step.data);
}

/* A program that ran out of space may have removed its file, so that there is space again. */
static bool has_met_full_disk(const struct remote *remote)
{
	return strstr(remote->tail, "No space left on device") ||
	       strstr(remote->tail, "Disk quota exceeded");
}

static void on_done(struct pool_job *job)
{
	struct remote *remote = CONTAINER_OF(job, struct remote, job);
	struct remote_step step = remote->step;
	bool worked = remote->worked && remote->lost.code == ERROR_NONE;
	struct error err = remote->lost.code != ERROR_NONE ? remote->lost : remote->err;
	bool has_words = remote->tail[strspn(remote->tail, " ")] && remote->lost.code == ERROR_NONE;
	if (!worked && has_words && !err.reason && has_met_full_disk(remote)) {
		err.reason = "DISK_FULL";
		error_prefix(&err, "the disk is full there");
	}
	if (!worked && has_words) {
		error_set_reason(&err, err.code, err.reason, "%s (%s)", err.text,
			remote->tail + strspn(remote->tail, " "));
	}
	remote_free(remote);
	step.done(step.data, worked ? NULL : &err);
}

/* ---- the script ---- */

static void exec_failed(void *data, const struct error *err)
{
	lose(data, err);
}

static void exec_exited(void *data, struct process_status status)
{
}

static const struct exec_listener exec_listener = {
	.on_failed = exec_failed,
	.on_exited = exec_exited,
	.on_lost = exec_failed,
};

static bool connect_work(struct remote *remote, struct error *err)
{
	int to_script[2] = {-1, -1};
	int from_script[2] = {-1, -1};
	if (!fd_pipe(to_script, err) || !fd_pipe(from_script, err)) {
		fd_close(&to_script[0]);
		fd_close(&to_script[1]);
		return false;
	}
	remote->ends = (struct remote_ends){.in = from_script[0], .out = to_script[1]};
	ev_io_set(&remote->in.from, to_script[0], EV_READ);
	ev_io_set(&remote->out.to, from_script[1], EV_WRITE);
	return fd_set_nonblock(to_script[0], true, err) &&
	       fd_set_nonblock(from_script[1], true, err);
}

static bool start_script(struct remote *remote, struct sandbox *sandbox, struct error *err)
{
	struct exec_spec spec = {.argv = remote->step.argv, .want_stdin = true};
	if (!connect_work(remote, err)) {
		return false;
	}
	remote->exec = sandbox_exec(sandbox, &spec, &exec_listener, remote, err);
	if (!remote->exec) {
		return false;
	}
	pump_start(&remote->in, remote->in.from.fd, exec_take_stdin(remote->exec));
	pump_start(&remote->out, exec_take_stdout(remote->exec), remote->out.to.fd);
	ev_io_set(&remote->words, exec_take_stderr(remote->exec), EV_READ);
	ev_io_start(remote->loop, &remote->words);
	ev_timer_again(remote->loop, &remote->silence);
	return true;
}

struct remote *remote_start(struct ev_loop *loop, struct pool *pool, struct sandbox *sandbox,
	const struct remote_step *step, struct error *err)
{
	struct remote *remote = mem_alloc_zero(sizeof(*remote));
	remote->loop = loop;
	remote->step = *step;
	remote->ends = (struct remote_ends){-1, -1};
	remote->job = (struct pool_job){
		.lane = POOL_LANE_SYNC, .run = on_run, .done = on_done, .drop = drop};
	error_set(&remote->err, ERROR_UNAVAILABLE, "syncing: the broker is ending");
	pump_init(&remote->in, remote);
	pump_init(&remote->out, remote);
	ev_io_init(&remote->words, on_words, -1, EV_READ);
	ev_init(&remote->silence, on_silence);
	remote->sandbox = sandbox;
	remote->away_ms = sandbox_away_ms(sandbox);
	remote->silence.repeat = (double)step->timeout_ms / 1000.;
	if ((step->argv && !start_script(remote, sandbox, err)) ||
		!pool_submit(pool, &remote->job, err)) {
		remote_free(remote);
		return NULL;
	}
	remote->step.argv = NULL;
	return remote;
}
