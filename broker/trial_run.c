/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "broker/trial.h"

enum { OUTPUT_MAX = 8 << 20, READ_SIZE = 64 * 1024 };

/* An output that is read to its end. */
struct drain {
	ev_io io;
	struct ev_loop *loop;
	struct run *run;
	struct buf *text; // borrowed
};

struct run {
	struct trial *trial;
	const struct trial_spec *spec;
	struct trial_result *result;
	struct exec *exec;
	ev_io writer;
	struct span left; // of the input
	struct drain outputs[2];
	bool has_exited, has_emptied, has_failed, was_killed;
	bool is_over;
	struct error err;
};

static void look(struct run *run)
{
	bool is_read = run->outputs[0].io.fd < 0 && run->outputs[1].io.fd < 0;
	run->is_over = run->has_failed || (run->has_exited && run->has_emptied && is_read);
}

static void fail(struct run *run, const struct error *err)
{
	if (!run->has_failed) {
		run->has_failed = true;
		run->err = *err;
	}
	look(run);
}

/* ---- its streams ---- */

static void on_writable(struct ev_loop *loop, ev_io *io, int events)
{
	struct run *run = CONTAINER_OF(io, struct run, writer);
	ssize_t wrote = run->left.len > 0 ? write(io->fd, run->left.data, run->left.len) : 0;
	if (wrote < 0 && io_is_transient(errno)) {
		return;
	}
	if (wrote > 0) {
		run->left = (struct span){run->left.data + wrote, run->left.len - (size_t)wrote};
	}
	if (wrote < 0 || run->left.len == 0) {
		io_close(loop, io); // who does not read it all is told by what is missing
	}
}

static void kill_once_seen(struct run *run)
{
	struct span text = buf_span(&run->result->out);
	const char *wanted = run->spec->kill_after;
	if (wanted && !run->was_killed && memmem(text.data, text.len, wanted, strlen(wanted))) {
		run->was_killed = true;
		exec_kill_tree(run->exec);
	}
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct drain *drain = CONTAINER_OF(io, struct drain, io);
	struct run *run = drain->run;
	struct error err;
	char *room = buf_reserve(drain->text, READ_SIZE, &err);
	if (!room) {
		fail(run, &err);
		io_close(loop, io);
		return;
	}
	ssize_t got = read(io->fd, room, READ_SIZE);
	if (got < 0 && io_is_transient(errno)) {
		return;
	}
	if (got > 0) {
		buf_commit(drain->text, (size_t)got);
		kill_once_seen(run);
		return;
	}
	io_close(loop, io);
	look(run);
}

/* ---- its life ---- */

static void on_started(void *data)
{
}

static void on_failed(void *data, const struct error *err)
{
	fail(data, err);
}

static void on_exited(void *data, struct process_status status)
{
	struct run *run = data;
	run->has_exited = true;
	run->result->status = status;
	look(run);
}

static void on_emptied(void *data)
{
	struct run *run = data;
	run->has_emptied = true;
	look(run);
}

static const struct exec_listener exec_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_failed,
};

static void read_from(struct run *run, struct drain *drain, int fd, struct buf *text)
{
	drain->run = run;
	drain->text = text;
	ev_io_init(&drain->io, on_readable, fd, EV_READ);
	ev_io_start(run->trial->means->loop, &drain->io);
}

bool trial_run(struct trial *trial, const struct trial_spec *spec, struct trial_result *out,
	struct error *err)
{
	struct ev_loop *loop = trial->means->loop;
	struct run run = {.trial = trial, .spec = spec, .result = out, .left = spec->input};
	struct exec_spec exec = {
		.argv = spec->argv, .env = spec->env, .cwd = trial->root, .want_stdin = true};
	*out = (struct trial_result){.status = {0}};
	buf_init(&out->out, OUTPUT_MAX);
	buf_init(&out->errors, OUTPUT_MAX);
	run.exec = sandbox_exec(trial->sandbox, &exec, &exec_listener, &run, err);
	if (!run.exec) {
		trial_result_finish(out);
		return false;
	}
	read_from(&run, &run.outputs[0], exec_take_stdout(run.exec), &out->out);
	read_from(&run, &run.outputs[1], exec_take_stderr(run.exec), &out->errors);
	ev_io_init(&run.writer, on_writable, exec_take_stdin(run.exec), EV_WRITE);
	ev_io_start(loop, &run.writer);
	bool ok = trial_wait_file(trial, &run.is_over, err);
	if (ok && run.has_failed) {
		*err = run.err;
		ok = false;
	}
	io_close(loop, &run.writer);
	io_close(loop, &run.outputs[0].io);
	io_close(loop, &run.outputs[1].io);
	exec_destroy(run.exec);
	if (!ok) {
		trial_result_finish(out);
	}
	return ok;
}

void trial_result_finish(struct trial_result *result)
{
	buf_finish(&result->out);
	buf_finish(&result->errors);
}

bool trial_shell(struct trial *trial, const char *line, struct buf *out, struct error *err)
{
	const char *argv[] = {"sh", "-c", line, NULL};
	struct trial_result result;
	if (!trial_run(trial, &(struct trial_spec){.argv = argv}, &result, err)) {
		return false;
	}
	bool ok = result.status.signal == 0 && result.status.code == 0;
	if (!ok) {
		char how[64];
		struct span said = buf_span(&result.errors);
		error_set(err, ERROR_UNAVAILABLE, "sh -c '%.200s' %s: %.*s", line,
			process_status_text(result.status, how, sizeof(how)),
			(int)(said.len < 300 ? said.len : 300), said.data ? said.data : "");
	} else if (out) {
		buf_move(out, &result.out);
	}
	trial_result_finish(&result);
	return ok;
}
