/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/guard_request.h"
#include "base/launch.h"
#include "providers/runner/runner.h"

/*
 * The runner's processes. Each has a guard, which the spawner forked, and up to three pipes, which
 * are streams of the link. Two of them lead to its terminal instead, if it has one.
 */

/* A pipe, or our side of a terminal, and its stream. */
struct run_pipe {
	struct runner *runner;
	int fd; // -1: closed, like the stream
	struct mux_stream *stream;
	enum mux_direction direction;
	enum mux_pump waits; // the event to wait for
};

enum run_state {
	RUN_STARTING,
	RUN_RUNNING, // STARTED was sent
	RUN_EXITED,  // EXITED was sent
	RUN_OVER,    // nothing more is reported
};

struct run {
	struct list link; // runner.runs
	struct runner *runner;
	uint64_t id;
	enum run_state state;
	int control;       // to the guard; -1: the guard has ended
	pid_t guard;       // 0 until started
	bool has_terminal; // pipes 0 and 1 are one
	bool tree_is_gone; // the guard was killed, and the spawner found no process left
	struct run_pipe pipes[3];
};

/* ---- pipes ---- */

static void pipe_close(struct run_pipe *pipe)
{
	mux_stream_close(pipe->stream);
	pipe->stream = NULL;
	fd_close(&pipe->fd);
}

static void pipe_move(struct run_pipe *pipe)
{
	if (pipe->fd < 0) {
		return;
	}
	if (pipe->direction == MUX_IN) {
		pipe->waits = mux_pump_in(pipe->stream, pipe->fd);
	} else {
		pipe->waits = mux_pump_out(pipe->stream, pipe->fd, NULL);
	}
	if (pipe->waits == MUX_PUMP_OVER && pipe->direction == MUX_OUT) {
		pipe->stream = NULL; // the link owns it from now on
	}
	if (pipe->waits == MUX_PUMP_OVER || pipe->waits == MUX_PUMP_BROKEN) {
		pipe_close(pipe);
	}
}

static void on_stream_ready(void *data)
{
	pipe_move(data);
}

static void on_stream_reset(void *data)
{
	pipe_close(data);
}

static const struct mux_stream_listener stream_listener = {
	.on_readable = on_stream_ready,
	.on_writable = on_stream_ready,
	.on_reset = on_stream_reset,
};

static void on_pipe_ready(void *data, short events)
{
	struct run_pipe *pipe = data;
	bool is_unread = pipe->direction == MUX_IN && (events & (POLLERR | POLLHUP));
	if (is_unread) {
		pipe_close(pipe); // the process has closed its stdin, or its terminal
	} else {
		pipe_move(pipe);
	}
}

static void pipe_watch(struct run_pipe *pipe)
{
	short events = pipe->direction == MUX_IN ? POLLOUT : POLLIN;
	if (pipe->fd < 0) {
		return;
	}
	if (pipe->waits == MUX_PUMP_FD) {
		runner_watch(pipe->runner, pipe->fd, events, on_pipe_ready, pipe);
	} else if (pipe->direction == MUX_IN) {
		runner_watch(pipe->runner, pipe->fd, 0, on_pipe_ready, pipe); // for is_unread
	}
}

static bool pipe_open_stream(
	struct run_pipe *pipe, const struct runner_stream *stream, bool is_bulk, struct error *err)
{
	pipe->stream = mux_open(pipe->runner->mux, stream, pipe->direction,
		is_bulk ? MUX_BULK : MUX_AGENT, &stream_listener, pipe, err);
	pipe->waits = pipe->direction == MUX_IN ? MUX_PUMP_LINK : MUX_PUMP_FD;
	return pipe->stream != NULL;
}

/* Opens the stream, and a pipe whose other end is for the process. */
static bool pipe_open(struct run_pipe *pipe, const struct runner_stream *stream, bool is_bulk,
	int *out_theirs, struct error *err)
{
	int fds[2];
	int own = pipe->direction == MUX_IN ? 1 : 0;
	if (stream->stream == 0) {
		return true;
	}
	if (!pipe_open_stream(pipe, stream, is_bulk, err) || !fd_pipe(fds, err)) {
		return false;
	}
	pipe->fd = fds[own];
	*out_theirs = fds[1 - own];
	fd_grow_pipe(pipe->fd);
	return fd_set_nonblock(pipe->fd, true, err);
}

/* Opens a terminal for the process, and a stream in each direction. */
static bool open_terminal(
	struct run *run, const struct runner_exec *exec, int *out_theirs, struct error *err)
{
	struct run_pipe *in = &run->pipes[0];
	struct run_pipe *out = &run->pipes[1];
	bool is_bulk = exec->is_bulk != 0;
	if (!pipe_open_stream(in, &exec->in, is_bulk, err) ||
		!pipe_open_stream(out, &exec->out, is_bulk, err)) {
		return false;
	}
	run->has_terminal = true;
	in->fd = terminal_open(&exec->size, out_theirs, err);
	if (in->fd < 0) {
		return false;
	}
	out->fd = fcntl(in->fd, F_DUPFD_CLOEXEC, 0);
	int errnum = errno;
	return out->fd >= 0 || error_set_errno(err, errnum, "opening a terminal");
}

static bool open_pipes(
	struct run *run, const struct runner_exec *exec, int theirs[3], struct error *err)
{
	const struct runner_stream *streams[] = {&exec->in, &exec->out, &exec->err};
	if (exec->has_terminal) {
		return open_terminal(run, exec, &theirs[0], err);
	}
	bool is_fine = true;
	for (int i = 0; i < 3; i++) {
		is_fine = is_fine && pipe_open(&run->pipes[i], streams[i], exec->is_bulk != 0,
					     &theirs[i], err);
	}
	return is_fine;
}

/* ---- reports of guards ---- */

static void tell(const struct run *run, enum runner_kind kind)
{
	runner_tell(run->runner, &(struct runner_message){.kind = kind, .id = run->id});
}

static void tell_exit(struct run *run, int code, int signal)
{
	run->state = RUN_EXITED;
	runner_tell(
		run->runner, &(struct runner_message){.kind = RUNNER_EXITED,
				     .id = run->id,
				     .exit = {.code = (uint64_t)code, .signal = (uint64_t)signal}});
}

static void tell_failure(struct run *run, const struct error *err)
{
	run->state = RUN_OVER;
	runner_tell_failure(run->runner, run->id, err);
}

static void tell_started(struct run *run, const struct guard_report *report)
{
	run->state = RUN_RUNNING;
	run->guard = report->guard;
	runner_tell(run->runner,
		&(struct runner_message){
			.kind = RUNNER_STARTED, .id = run->id, .pid = (uint64_t)report->pid});
}

static void tell_frozen(struct run *run, const struct guard_report *report)
{
	runner_tell(run->runner,
		&(struct runner_message){.kind = RUNNER_FROZEN,
			.id = run->id,
			.failure = {.code = report->error, .text = span_of(report->text)}});
}

static void take_report(struct run *run, const struct guard_report *report)
{
	struct error err;
	if (report->event == GUARD_FAILED && run->state == RUN_STARTING) {
		error_set_reason(&err, report->error,
			report->lacks_folder ? "DIRECTORY_NOT_FOUND" : NULL, "%s", report->text);
		tell_failure(run, &err);
	} else if (report->event == GUARD_STARTED && run->state == RUN_STARTING) {
		tell_started(run, report);
	} else if (report->event == GUARD_EXITED && run->state == RUN_RUNNING) {
		tell_exit(run, report->code, report->signal);
	} else if (report->event == GUARD_EMPTIED && run->state == RUN_EXITED) {
		run->state = RUN_OVER;
		tell(run, RUNNER_EMPTIED);
	} else if (report->event == GUARD_FROZEN) {
		tell_frozen(run, report);
	} else if (report->event == GUARD_THAWED) {
		tell(run, RUNNER_THAWED);
	}
}

/* Reports what a guard that was killed would still have reported. */
static void tell_rest(struct run *run)
{
	struct error err;
	if (run->state == RUN_STARTING) {
		error_set(&err, ERROR_SYSTEM, "starting a process: its guard was killed");
		tell_failure(run, &err);
	} else if (run->state == RUN_RUNNING) {
		tell_exit(run, 0, SIGKILL);
	}
	if (run->state == RUN_EXITED && run->tree_is_gone) {
		run->state = RUN_OVER;
		tell(run, RUNNER_EMPTIED);
	}
}

static void on_control_ready(void *data, short events)
{
	struct run *run = data;
	struct guard_report report = {0};
	if (run->control < 0) {
		return; // closed in this turn
	}
	ssize_t size = recv(run->control, &report, sizeof(report), MSG_DONTWAIT);
	if (size < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) {
		return;
	}
	if (size >= (ssize_t)offsetof(struct guard_report, text)) {
		report.text[sizeof(report.text) - 1] = '\0';
		take_report(run, &report);
		return;
	}
	fd_close(&run->control);
	tell_rest(run);
}

bool runs_read_losses(struct runner *runner)
{
	struct guard_loss loss;
	ssize_t size = recv(runner->spawner_socket, &loss, sizeof(loss), MSG_DONTWAIT);
	if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
		return true;
	}
	if (size != (ssize_t)sizeof(loss)) {
		return false;
	}
	LIST_FOR_EACH(run, &runner->runs, struct run, link) {
		if (run->id == loss.id) {
			run->tree_is_gone = true;
			if (run->control < 0) {
				tell_rest(run);
			}
		}
	}
	return true;
}

/* ---- orders ---- */

static struct run *run_find(const struct runner *runner, uint64_t id)
{
	LIST_FOR_EACH(run, &runner->runs, struct run, link) {
		if (run->id == id) {
			return run;
		}
	}
	return NULL;
}

/* Continues the guard in case it was stopped: the process has the same user and could do that. */
static void wake_guard(const struct run *run)
{
	kill(run->runner->spawner, SIGCONT);
	if (run->guard > 0) {
		kill(run->guard, SIGCONT);
	}
}

static void order_guard(const struct run *run, enum guard_command command, int signal)
{
	struct guard_order order;
	memset(&order, 0, sizeof(order)); // also clears the padding
	order.command = command;
	order.signal = signal;
	if (run->control >= 0 && run->state != RUN_OVER) {
		wake_guard(run);
		(void)!send(run->control, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

/* The guard kills the tree when its socket is closed. */
static void run_release(struct run *run)
{
	if (run->control >= 0) {
		wake_guard(run);
	}
	run->state = RUN_OVER;
	fd_close(&run->control);
	for (int i = 0; i < 3; i++) {
		pipe_close(&run->pipes[i]);
	}
}

void run_order(struct runner *runner, const struct runner_message *message)
{
	struct run *run = run_find(runner, message->id);
	if (message->kind == RUNNER_RELEASE) {
		mux_acknowledge(runner->mux); // the broker may be about to leave
	}
	if (!run) {
		return; // it ended before the order came
	}
	switch (message->kind) {
	case RUNNER_SIGNAL:
		order_guard(run, GUARD_SIGNAL, (int)message->signal);
		break;
	case RUNNER_RESIZE:
		if (run->has_terminal && run->pipes[1].fd >= 0 &&
			terminal_size_is_valid(&message->resize)) {
			terminal_resize(run->pipes[1].fd, &message->resize);
		}
		break;
	case RUNNER_KILL:
		order_guard(run, GUARD_KILL_TREE, 0);
		break;
	case RUNNER_FREEZE:
		order_guard(run, GUARD_FREEZE, 0);
		break;
	case RUNNER_THAW:
		order_guard(run, GUARD_THAW, 0);
		break;
	default:
		run_release(run);
		break;
	}
}

/* ---- life ---- */

static bool request_guard(
	struct run *run, const struct process_spec *spec, int guard_control, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int launch_fd = launch_pack(spec, err);
	if (launch_fd < 0) {
		return false;
	}
	struct guard_request request;
	memset(&request, 0, sizeof(request)); // also clears the padding
	request.id = run->id;
	request.is_grouped = spec->is_grouped;
	request.owns_terminal = spec->owns_terminal;
	request.has_fds[0] = spec->in >= 0;
	request.has_fds[1] = spec->out >= 0;
	request.has_fds[2] = spec->err >= 0;
	const int fds[GUARD_FDS_MAX] = {
		guard_control, launch_fd, spec->in, spec->out, spec->err, -1, -1};
	int errnum = guard_request_send(run->runner->spawner_socket, &request, fds);
	return errnum == 0 || error_set_errno(err, errnum, "starting a process");
}

static bool start_guard(struct run *run, const struct process_spec *spec, struct error *err)
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "starting a process");
	}
	run->control = sockets[0];
	bool is_sent = request_guard(run, spec, sockets[1], err);
	fd_close(&sockets[1]);
	return is_sent;
}

/* The broker checks these values before it sends them; the runner does not rely on it. */
static bool check(const struct runner *runner, const struct runner_exec *exec, const char *cwd,
	const char **argv, struct error *err)
{
	if (runner->run_count >= RUNNER_RUNS_MAX) {
		return error_set(err, ERROR_LIMIT,
			"starting \"%s\": %d processes are running already", argv[0] ? argv[0] : "",
			RUNNER_RUNS_MAX);
	}
	if (!argv[0] || cwd[0] != '/' || strlen(cwd) != exec->cwd.len) {
		return error_set(err, ERROR_CONFIG,
			"starting a process: there is no program, or the folder's path is not "
			"absolute");
	}
	bool has_ends = exec->in.stream > 0 && exec->out.stream > 0 && exec->err.stream == 0;
	if (exec->has_terminal && (!has_ends || !terminal_size_is_valid(&exec->size))) {
		return error_set(err, ERROR_CONFIG,
			"starting \"%s\": its terminal needs one stream in each direction, and "
			"sides of less than 65536 characters",
			argv[0]);
	}
	return true;
}

static bool start(struct run *run, const struct runner_exec *exec, int theirs[3], struct error *err)
{
	char *cwd = mem_strndup(exec->cwd);
	const char **argv = runner_words_list(exec->argv.packed);
	const char **env = runner_words_list(exec->env.packed);
	const struct runner_stream *streams[] = {&exec->in, &exec->out, &exec->err};
	bool is_fine =
		check(run->runner, exec, cwd, argv, err) && open_pipes(run, exec, theirs, err);
	bool has_terminal = run->has_terminal;
	const struct process_spec spec = {.argv = argv,
		.env = env,
		.cwd = cwd,
		.cwd_root = (size_t)exec->cwd_root,
		.in = theirs[0],
		.out = has_terminal ? theirs[0] : theirs[1],
		.err = has_terminal            ? theirs[0]
	               : exec->err.stream == 0 ? theirs[1]
	                                       : theirs[2],
		.owns_terminal = has_terminal,
		.is_grouped = exec->is_grouped != 0};
	is_fine = is_fine && start_guard(run, &spec, err);
	for (int i = 0; i < 3 && !is_fine; i++) {
		mux_refuse(run->runner->mux, streams[i]);
	}
	free(argv);
	free(env);
	free(cwd);
	return is_fine;
}

void run_start(struct runner *runner, const struct runner_message *message)
{
	struct error err;
	int theirs[3] = {-1, -1, -1};
	struct run *run = mem_alloc_zero(sizeof(*run));
	run->runner = runner;
	run->id = message->id;
	run->control = -1;
	for (int i = 0; i < 3; i++) {
		run->pipes[i] = (struct run_pipe){
			.runner = runner, .fd = -1, .direction = i == 0 ? MUX_IN : MUX_OUT};
	}
	bool is_started = start(run, &message->exec, theirs, &err);
	for (int i = 0; i < 3; i++) {
		fd_close(&theirs[i]);
	}
	list_append(&runner->runs, &run->link);
	runner->run_count++;
	if (!is_started) {
		tell_failure(run, &err);
		run_release(run);
	}
}

static void run_free(struct run *run)
{
	for (int i = 0; i < 3; i++) {
		pipe_close(&run->pipes[i]);
	}
	run->runner->run_count--;
	list_remove(&run->link);
	free(run);
}

void runs_watch(struct runner *runner)
{
	LIST_FOR_EACH(run, &runner->runs, struct run, link) {
		bool has_pipe = false;
		for (int i = 0; i < 3; i++) {
			has_pipe = has_pipe || run->pipes[i].fd >= 0;
			pipe_watch(&run->pipes[i]);
		}
		if (run->control >= 0) {
			runner_watch(runner, run->control, POLLIN, on_control_ready, run);
		} else if (run->state == RUN_OVER && !has_pipe) {
			run_free(run);
		}
	}
}

bool runs_are_over(const struct runner *runner)
{
	LIST_FOR_EACH(run, &runner->runs, struct run, link) {
		if (run->state != RUN_OVER) {
			return false;
		}
	}
	return true;
}

void runs_end(struct runner *runner)
{
	LIST_FOR_EACH(run, &runner->runs, struct run, link) {
		run_release(run);
		run_free(run);
	}
}
