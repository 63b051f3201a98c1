/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

enum {
	READS_A_TURN = 4,      // then others get their turn
	READS_AT_EXIT = 16,    // the last output of an ended process fits a pipe
	PIPE_FULL = 64 * 1024, // bytes in one loop iteration: it writes as fast as we read
	PIPE_LARGE = 256 * 1024,
};

/*
 * How long to wait for more output after the exit, while the output is still open. On this machine
 * the last bytes are in the pipe by then, and later ones come from a background child process. From
 * elsewhere the exit may overtake the output, because the two arrive on different channels.
 */
static const struct patience {
	double quiet_s; // without a byte
	double drain_s; // at most
} here = {0.2, 2.0}, elsewhere = {2.0, 10.0};

struct terminal {
	struct ev_loop *loop;
	const struct terminal_listener *listener;
	void *data;
	struct sandbox *sandbox; // borrowed
	struct exec *exec;
	char *read_buffer; // borrowed
	int fd;            // its output; -1 once closed
	ev_io reader;
	ev_timer timeout;
	ev_timer quiet;
	const struct patience *patience;
	double drain_until;                       // ev_now
	long long timeout_away_ms, quiet_away_ms; // sandbox_extend_timer
	bool is_emptied;                          // on_emptied is due after the exit
	bool pipe_is_large;
	bool is_started;
	bool is_over; // the provider has reported the exit
	struct output_tail tail;
	struct terminal_end end;
};

/* ---- the end ---- */

static const char *limit_effect(const struct process_status *status)
{
	return status->limit == LIMIT_PROCESSES ? "a process could not be started"
	                                        : "the command was ended";
}

/* Writes the limit into the output, for those who read nothing else: the model, and most people. */
static void say_limit(struct terminal *terminal)
{
	const struct process_status *status = &terminal->end.status;
	const char *limit = sandbox_limit(terminal->sandbox, status->limit);
	char line[200];
	if (limit) {
		text_format(line, sizeof(line), "\n[acp-broker: %s: it reached %s]\n",
			limit_effect(status), limit);
		output_tail_add(&terminal->tail, span_of(line));
	}
}

/* The handler may destroy the terminal, so the caller must do nothing after this. */
static void tell_exit(struct terminal *terminal)
{
	say_limit(terminal);
	ev_timer_stop(terminal->loop, &terminal->quiet);
	terminal->end.has_exited = true;
	if (terminal->is_emptied) {
		ev_timer_set(
			&terminal->quiet, 0., 0.); // on_emptied follows in a later loop iteration
		ev_timer_start(terminal->loop, &terminal->quiet);
	}
	terminal->listener->on_exited(terminal->data);
}

/* While the connection is lost, silence says nothing about the output that is still under way. */
static bool waits_for_link(struct terminal *terminal)
{
	long long counted_ms = terminal->quiet_away_ms;
	if (!sandbox_extend_timer(terminal->sandbox, &terminal->quiet, &terminal->quiet_away_ms)) {
		return false;
	}
	terminal->drain_until += (double)(terminal->quiet_away_ms - counted_ms) / 1000.;
	return true;
}

static void on_quiet(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct terminal *terminal = CONTAINER_OF(timer, struct terminal, quiet);
	if (terminal->end.has_exited) {
		terminal->listener->on_emptied(terminal->data);
	} else if (!waits_for_link(terminal)) {
		tell_exit(terminal);
	}
}

/*
 * If nothing of the command runs any more, the output is certain to end, so silence does not count.
 */
static void wait_for_quiet(struct terminal *terminal)
{
	double left = terminal->drain_until - ev_now(terminal->loop);
	double quiet = terminal->patience->quiet_s;
	double wait = terminal->is_emptied || left < quiet ? left : quiet;
	ev_timer_stop(terminal->loop, &terminal->quiet);
	ev_timer_set(&terminal->quiet, wait < 0. ? 0. : wait, 0.);
	ev_timer_start(terminal->loop, &terminal->quiet);
}

/* ---- output ---- */

static void close_output(struct terminal *terminal)
{
	if (terminal->fd >= 0) {
		ev_io_stop(terminal->loop, &terminal->reader);
		fd_close(&terminal->fd);
	}
}

/* A larger pipe means fewer and larger reads. The kernel refuses if too many pipes are large. */
static void enlarge_pipe(struct terminal *terminal)
{
	if (!terminal->pipe_is_large) {
		terminal->pipe_is_large = true;
		(void)fcntl(terminal->fd, F_SETPIPE_SZ, PIPE_LARGE);
	}
}

/* Returns the number of bytes read. */
static size_t take_output(struct terminal *terminal, int reads)
{
	size_t taken = 0;
	for (int i = 0; i < reads && terminal->fd >= 0; i++) {
		ssize_t count = read(terminal->fd, terminal->read_buffer, TERMINAL_READ_SIZE);
		if (count > 0) {
			struct span piece = {terminal->read_buffer, (size_t)count};
			output_tail_add(&terminal->tail, piece);
			if (terminal->listener->on_piece) {
				terminal->listener->on_piece(terminal->data, piece);
			}
			taken += (size_t)count;
		} else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
			close_output(terminal);
		} else if (errno == EAGAIN) {
			break;
		}
	}
	if (taken >= PIPE_FULL && terminal->fd >= 0) {
		enlarge_pipe(terminal);
	}
	return taken;
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct terminal *terminal = CONTAINER_OF(io, struct terminal, reader);
	size_t taken = take_output(terminal, READS_A_TURN);
	bool exit_is_due = terminal->is_over && !terminal->end.has_exited;
	if (exit_is_due && terminal->fd < 0) {
		tell_exit(terminal);
	} else if (taken > 0 || terminal->fd < 0) {
		if (exit_is_due) {
			wait_for_quiet(terminal);
		}
		terminal->listener->on_output(terminal->data);
	}
}

/* ---- the process ---- */

static void on_timeout(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct terminal *terminal = CONTAINER_OF(timer, struct terminal, timeout);
	if (sandbox_extend_timer(terminal->sandbox, timer, &terminal->timeout_away_ms)) {
		return; // it may have ended in time, and we do not know it yet
	}
	terminal->end.timed_out = true;
	terminal_kill(terminal);
}

static void on_started(void *data)
{
	struct terminal *terminal = data;
	terminal->is_started = true;
	terminal->patience = exec_process(terminal->exec) > 0 ? &here : &elsewhere;
	if (terminal->timeout.at > 0.) {
		terminal->timeout_away_ms = sandbox_away_ms(terminal->sandbox);
		ev_timer_start(terminal->loop, &terminal->timeout);
	}
	terminal->listener->on_started(terminal->data);
}

static void on_failed(void *data, const struct error *err)
{
	struct terminal *terminal = data;
	close_output(terminal);
	terminal->listener->on_failed(terminal->data, err);
}

static void note_exit(struct terminal *terminal)
{
	terminal->is_over = true;
	ev_timer_stop(terminal->loop, &terminal->timeout);
	take_output(terminal, READS_AT_EXIT);
	if (terminal->fd < 0) {
		tell_exit(terminal);
		return;
	}
	terminal->drain_until = ev_now(terminal->loop) + terminal->patience->drain_s;
	terminal->quiet_away_ms = sandbox_away_ms(terminal->sandbox);
	wait_for_quiet(terminal);
}

static void on_exited(void *data, struct process_status status)
{
	struct terminal *terminal = data;
	terminal->end.status = status;
	note_exit(terminal);
}

static void on_emptied(void *data)
{
	struct terminal *terminal = data;
	if (terminal->end.has_exited) {
		terminal->listener->on_emptied(terminal->data);
	} else {
		terminal->is_emptied = true;
		if (terminal->is_over) {
			wait_for_quiet(terminal);
		}
	}
}

static void on_lost(void *data, const struct error *err)
{
	struct terminal *terminal = data;
	if (!terminal->is_started) {
		on_failed(data, err);
		return;
	}
	if (terminal->is_over) {
		on_emptied(data); // it had ended before; what else runs is unknown
		return;
	}
	terminal->is_emptied = true;
	terminal->end.is_lost = true;
	note_exit(terminal);
}

static const struct exec_listener exec_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_lost,
};

/* ---- life ---- */

struct terminal *terminal_start(const struct terminal_config *config,
	const struct terminal_listener *listener, void *data, struct error *err)
{
	struct terminal *terminal = mem_alloc_zero(sizeof(*terminal));
	terminal->loop = config->loop;
	terminal->listener = listener;
	terminal->data = data;
	terminal->sandbox = config->sandbox;
	terminal->read_buffer = config->read_buffer;
	terminal->patience = &elsewhere;
	output_tail_init(&terminal->tail, config->output_limit);
	ev_timer_init(&terminal->timeout, on_timeout, config->timeout_ms / 1000., 0.);
	ev_timer_init(&terminal->quiet, on_quiet, 0., 0.);
	struct exec_spec spec = {
		.argv = config->argv,
		.env = config->env,
		.cwd = config->cwd,
		.cwd_root = config->cwd_root,
		.merge_stderr = true,
		.suspends = true,
		.is_limited = true,
	};
	terminal->exec = sandbox_exec(config->sandbox, &spec, &exec_listener, terminal, err);
	if (!terminal->exec) {
		free(terminal);
		return NULL;
	}
	terminal->fd = exec_take_stdout(terminal->exec);
	ev_io_init(&terminal->reader, on_readable, terminal->fd, EV_READ);
	ev_io_start(terminal->loop, &terminal->reader);
	return terminal;
}

void terminal_destroy(struct terminal *terminal)
{
	if (!terminal) {
		return;
	}
	close_output(terminal);
	ev_timer_stop(terminal->loop, &terminal->timeout);
	ev_timer_stop(terminal->loop, &terminal->quiet);
	exec_destroy(terminal->exec);
	output_tail_finish(&terminal->tail);
	free(terminal);
}

void terminal_kill(struct terminal *terminal)
{
	if (!terminal->is_over) {
		exec_signal_group(terminal->exec, SIGKILL);
	}
}

void terminal_ignore_output(struct terminal *terminal)
{
	output_tail_drop(&terminal->tail);
}

const struct output_tail *terminal_output(const struct terminal *terminal)
{
	return &terminal->tail;
}

bool terminal_output_has_ended(const struct terminal *terminal)
{
	return terminal->fd < 0;
}

struct terminal_end terminal_end(const struct terminal *terminal)
{
	return terminal->end;
}
