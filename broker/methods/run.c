/* SPDX-License-Identifier: MIT */
#include "broker/methods/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"

enum { PIECE = 64 * 1024 }; // bytes of one read

/* One of its outputs. */
struct stream {
	struct run *run;
	ev_io reader;
	struct buf kept;
	uint64_t total;
	bool has_ended;
};

struct run {
	struct run_config config; // without the borrowed members
	struct exec *exec;        // owned; NULL once it has ended
	struct buf input;
	ev_io writer;
	struct stream out, errors;
	ev_timer due;                          // timeout_ms; from its exit on, RUN_LEFT_MS
	ev_timer settle;                       // RUN_SETTLE_MS
	long long due_away_ms, settle_away_ms; // sandbox_extend_timer
	long long began_ms, ended_ms;
	struct process_status status;
	bool has_exited, is_over, has_failed, timed_out;
	struct error err;
};

/* ---- the end ---- */

static void close_all(struct run *run)
{
	io_close(run->config.loop, &run->writer);
	io_close(run->config.loop, &run->out.reader);
	io_close(run->config.loop, &run->errors.reader);
	ev_timer_stop(run->config.loop, &run->due);
	ev_timer_stop(run->config.loop, &run->settle);
	exec_destroy(run->exec);
	run->exec = NULL;
}

static void end(struct run *run)
{
	if (!run->is_over) {
		run->is_over = true;
		run->ended_ms = clock_now_ms();
		close_all(run);
		run->config.done(run->config.data);
	}
}

static void fail(void *data, const struct error *err)
{
	struct run *run = data;
	run->has_failed = true;
	run->err = *err;
	end(run);
}

/*
 * The run is over once the command has exited, and its output has ended or no process writes any
 * more.
 */
static void check_end(struct run *run)
{
	if (!run->has_exited) {
		return;
	}
	if (run->out.has_ended && run->errors.has_ended) {
		end(run);
		return;
	}
	run->settle_away_ms = sandbox_away_ms(run->config.sandbox);
	ev_timer_again(run->config.loop, &run->settle);
}

static void on_settled(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct run *run = CONTAINER_OF(timer, struct run, settle);
	if (!sandbox_extend_timer(run->config.sandbox, timer, &run->settle_away_ms)) {
		end(run);
	}
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct run *run = CONTAINER_OF(timer, struct run, due);
	if (sandbox_extend_timer(run->config.sandbox, timer, &run->due_away_ms)) {
		return;
	}
	ev_timer_stop(loop, timer);
	run->timed_out = run->timed_out || !run->has_exited;
	exec_kill_tree(run->exec);
}

static void on_exited(void *data, struct process_status status)
{
	struct run *run = data;
	run->has_exited = true;
	run->status = status;
	ev_timer_stop(run->config.loop, &run->due);
	run->due_away_ms = sandbox_away_ms(run->config.sandbox);
	ev_timer_set(&run->due, RUN_LEFT_MS / 1000., 0.);
	ev_timer_start(run->config.loop, &run->due);
	check_end(run);
}

static const struct exec_listener listener = {
	.on_failed = fail, .on_exited = on_exited, .on_lost = fail};

/* ---- its input and output ---- */

static void on_writable(struct ev_loop *loop, ev_io *io, int events)
{
	struct run *run = CONTAINER_OF(io, struct run, writer);
	struct span rest = buf_span(&run->input);
	ssize_t sent = rest.len > 0 ? write(io->fd, rest.data, rest.len) : 0;
	if (sent > 0) {
		buf_consume(&run->input, (size_t)sent);
	}
	bool is_closed = sent < 0 && !io_is_transient(errno); // it has closed its stdin
	if (is_closed || run->input.len == 0) {
		io_close(loop, io);
		buf_finish(&run->input);
		buf_init(&run->input, 0);
	}
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct stream *stream = CONTAINER_OF(io, struct stream, reader);
	struct run *run = stream->run;
	char piece[PIECE];
	ssize_t got = read(io->fd, piece, sizeof(piece));
	if (got > 0) {
		size_t room = run->config.output_max - stream->kept.len;
		size_t kept = (size_t)got < room ? (size_t)got : room;
		bool fits = buf_append(&stream->kept, (struct span){piece, kept}, NULL);
		stream->total += (uint64_t)got;
		(void)fits; // at most as much is kept as fits
	} else if (got == 0 || !io_is_transient(errno)) {
		io_close(loop, io);
		stream->has_ended = true;
	}
	check_end(run);
}

static void stream_init(struct stream *stream, struct run *run)
{
	stream->run = run;
	ev_init(&stream->reader, on_readable);
	stream->reader.fd = -1;
	buf_init(&stream->kept, run->config.output_max);
}

static void stream_start(struct stream *stream, int fd)
{
	ev_io_set(&stream->reader, fd, EV_READ);
	ev_io_start(stream->run->config.loop, &stream->reader);
}

/* ---- life ---- */

static struct run *run_create(const struct run_config *config)
{
	struct run *run = mem_alloc_zero(sizeof(*run));
	run->config = *config;
	run->began_ms = clock_now_ms();
	buf_init(&run->input, config->input.len);
	stream_init(&run->out, run);
	stream_init(&run->errors, run);
	ev_init(&run->writer, on_writable);
	run->writer.fd = -1;
	ev_timer_init(&run->due, on_due, config->timeout_ms / 1000., 0.);
	ev_init(&run->settle, on_settled);
	run->settle.repeat = RUN_SETTLE_MS / 1000.;
	return run;
}

struct run *run_start(const struct run_config *config, struct error *err)
{
	struct run *run = run_create(config);
	const struct exec_spec spec = {.argv = config->argv,
		.env = config->env,
		.cwd = config->cwd,
		.cwd_root = config->cwd_root,
		.want_stdin = config->input.len > 0,
		.suspends = !config->is_ours,
		.is_limited = !config->is_ours};
	run->exec = buf_append(&run->input, config->input, err)
	                    ? sandbox_exec(config->sandbox, &spec, &listener, run, err)
	                    : NULL;
	if (!run->exec) {
		run_destroy(run);
		return NULL;
	}
	stream_start(&run->out, exec_take_stdout(run->exec));
	stream_start(&run->errors, exec_take_stderr(run->exec));
	if (spec.want_stdin) {
		ev_io_set(&run->writer, exec_take_stdin(run->exec), EV_WRITE);
		ev_io_start(config->loop, &run->writer);
	}
	run->due_away_ms = sandbox_away_ms(config->sandbox);
	if (config->timeout_ms > 0) {
		ev_timer_start(config->loop, &run->due);
	}
	return run;
}

struct run_result run_result(const struct run *run)
{
	long long until = run->is_over ? run->ended_ms : clock_now_ms();
	return (struct run_result){.is_over = run->is_over,
		.has_failed = run->has_failed,
		.err = run->err,
		.timed_out = run->timed_out,
		.status = run->status,
		.duration_ms = until - run->began_ms,
		.out = buf_span(&run->out.kept),
		.errors = buf_span(&run->errors.kept),
		.out_total = run->out.total,
		.err_total = run->errors.total};
}

void run_signal(struct run *run, int signal)
{
	if (run->exec && signal == SIGKILL) {
		exec_kill_tree(run->exec);
	} else if (run->exec) {
		exec_signal_group(run->exec, signal);
	}
}

void run_destroy(struct run *run)
{
	if (run) {
		close_all(run);
		buf_finish(&run->input);
		buf_finish(&run->out.kept);
		buf_finish(&run->errors.kept);
		free(run);
	}
}
