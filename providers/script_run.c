/* SPDX-License-Identifier: MIT */
#include "providers/script_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

enum { CHUNK = 65536, WORDS_MAX = 400 };

struct script_run {
	struct ev_loop *loop;
	const struct sandbox *sandbox;
	struct exec *exec;    // owned; NULL once the script was cut off
	ev_io in, out, words; // their fd is -1 once closed
	ev_timer silence, deadline;
	long long silence_away_ms, deadline_away_ms; // sandbox_extend_timer
	struct span input;                           // not written yet
	struct buf output;
	struct buf *errors; // borrowed; may be NULL
	char tail[WORDS_MAX + 1];
	bool has_exited, has_emptied; // has_emptied is also set if nobody waits for that
	struct process_status status;
	const struct script_listener *listener;
	void *data;
};

static void cut_off(struct script_run *run)
{
	ev_timer_stop(run->loop, &run->silence);
	ev_timer_stop(run->loop, &run->deadline);
	io_close(run->loop, &run->in);
	io_close(run->loop, &run->out);
	io_close(run->loop, &run->words);
	exec_destroy(run->exec);
	run->exec = NULL;
}

static const char *words_of(const struct script_run *run)
{
	return run->tail + strspn(run->tail, " ");
}

/* The handler may destroy the run, so the caller must return at once. */
static void end(struct script_run *run, const struct error *err)
{
	cut_off(run);
	run->listener->on_end(run->data, &run->output, words_of(run), err);
}

static void check_ended(struct script_run *run)
{
	if (run->has_exited && run->has_emptied && run->out.fd < 0 && run->words.fd < 0) {
		end(run, NULL);
	}
}

static void note_progress(struct script_run *run)
{
	if (run->silence.repeat > 0.) {
		ev_timer_again(run->loop, &run->silence);
	}
}

/* ---- the streams ---- */

static void on_writable(struct ev_loop *loop, ev_io *io, int events)
{
	struct script_run *run = CONTAINER_OF(io, struct script_run, in);
	ssize_t count = write(io->fd, run->input.data, run->input.len);
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	note_progress(run);
	if (count > 0) {
		run->input.data += count;
		run->input.len -= (size_t)count;
	}
	if (count < 0 || run->input.len == 0) { // it reads no more, or has everything
		io_close(loop, io);
	}
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct script_run *run = CONTAINER_OF(io, struct script_run, out);
	struct error err;
	size_t room = run->output.max - run->output.len;
	char extra;
	size_t want = room < CHUNK ? room : CHUNK;
	/*
	 * One more byte than the maximum shows that there is too much; it needs no room in the
	 * buffer.
	 */
	char *at = want > 0 ? buf_reserve(&run->output, want, NULL) : &extra;
	ssize_t count = read(io->fd, at, want > 0 ? want : 1);
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	note_progress(run);
	if (count > 0 && want == 0) {
		error_set(&err, ERROR_LIMIT, "it writes more than %zu bytes", run->output.max);
		end(run, &err);
	} else if (count > 0) {
		buf_commit(&run->output, (size_t)count);
		if (run->listener->on_output) {
			run->listener->on_output(run->data, buf_span(&run->output), words_of(run));
		}
	} else {
		io_close(loop, io);
		check_ended(run);
	}
}

static void on_words(struct ev_loop *loop, ev_io *io, int events)
{
	struct script_run *run = CONTAINER_OF(io, struct script_run, words);
	struct error err;
	char chunk[4096];
	ssize_t count = read(io->fd, chunk, sizeof(chunk));
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	if (count <= 0) {
		io_close(loop, io);
		check_ended(run);
		return;
	}
	note_progress(run);
	io_keep_words(run->tail, WORDS_MAX, (struct span){chunk, (size_t)count});
	if (run->errors && !buf_append(run->errors, (struct span){chunk, (size_t)count}, &err)) {
		end(run, &err);
	}
}

/* ---- the process ---- */

static void on_failed(void *data, const struct error *err)
{
	end(data, err);
}

static void on_exited(void *data, struct process_status status)
{
	struct script_run *run = data;
	run->has_exited = true;
	run->status = status;
	check_ended(run);
}

static void on_emptied(void *data)
{
	struct script_run *run = data;
	if (!run->has_emptied) {
		run->has_emptied = true;
		check_ended(run);
	}
}

static const struct exec_listener exec_listener = {
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_failed,
};

/* ---- deadlines ---- */

static void fail_late(struct script_run *run, const char *what, double seconds)
{
	struct error err;
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED", "%s within %lld ms", what,
		(long long)(seconds * 1000.));
	end(run, &err);
}

static void on_silence(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct script_run *run = CONTAINER_OF(timer, struct script_run, silence);
	if (!sandbox_extend_timer(run->sandbox, timer, &run->silence_away_ms)) {
		fail_late(run, "nothing has come from the sandbox", timer->repeat);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct script_run *run = CONTAINER_OF(timer, struct script_run, deadline);
	if (!sandbox_extend_timer(run->sandbox, timer, &run->deadline_away_ms)) {
		fail_late(run, "it did not end", timer->repeat);
	}
}

/* ---- life ---- */

static void timer_start(struct ev_loop *loop, ev_timer *timer, long long ms)
{
	timer->repeat = (double)ms / 1000.;
	if (ms > 0) {
		ev_timer_again(loop, timer);
	}
}

struct script_run *script_run_start(struct ev_loop *loop, struct sandbox *sandbox,
	const struct script_order *order, const struct script_listener *listener, void *data,
	struct error *err)
{
	struct script_run *run = mem_alloc_zero(sizeof(*run));
	bool has_input = order->input.len > 0;
	struct exec_spec spec = {.argv = order->argv,
		.env = order->env,
		.cwd = order->cwd,
		.want_stdin = has_input,
		.is_limited = order->is_limited};
	*run = (struct script_run){.loop = loop,
		.sandbox = sandbox,
		.input = order->input,
		.errors = order->errors,
		.has_emptied = !order->until_emptied,
		.listener = listener,
		.data = data};
	buf_init(&run->output, order->output_max);
	run->exec = sandbox_exec(sandbox, &spec, &exec_listener, run, err);
	if (!run->exec) {
		free(run);
		return NULL;
	}
	ev_io_init(&run->in, on_writable, exec_take_stdin(run->exec), EV_WRITE);
	ev_io_init(&run->out, on_readable, exec_take_stdout(run->exec), EV_READ);
	ev_io_init(&run->words, on_words, exec_take_stderr(run->exec), EV_READ);
	ev_init(&run->silence, on_silence);
	ev_init(&run->deadline, on_deadline);
	if (has_input) {
		ev_io_start(loop, &run->in);
	}
	ev_io_start(loop, &run->out);
	ev_io_start(loop, &run->words);
	ev_now_update(loop);
	run->silence_away_ms = run->deadline_away_ms = sandbox_away_ms(sandbox);
	timer_start(loop, &run->silence, order->silence_ms);
	timer_start(loop, &run->deadline, order->deadline_ms);
	return run;
}

struct process_status script_run_status(const struct script_run *run)
{
	return run->status;
}

void script_run_kill(struct script_run *run)
{
	exec_kill_tree(run->exec);
}

void script_run_destroy(struct script_run *run)
{
	if (!run) {
		return;
	}
	cut_off(run);
	buf_finish(&run->output);
	free(run);
}
