/* SPDX-License-Identifier: MIT */
#include "broker/agent/login_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/signals.h"

enum { LANE_BYTES = 4096 };

/* Copies bytes from one descriptor to another. */
struct lane {
	struct login_terminal *terminal;
	void (*on_moved)(struct lane *lane); // bytes were read or written; may be NULL
	void (*on_over)(struct lane *lane, bool has_ended); // false: the reader has gone
	ev_io reads;
	ev_io writes;
	char bytes[LANE_BYTES];
	size_t begin; // of the bytes not written yet
	size_t end;
};

struct login_terminal {
	struct ev_loop *loop;
	const struct login_terminal_listener *listener;
	void *data;
	struct fd_inherited in;
	struct fd_inherited out;
	struct termios modes; // to restore
	enum login_terminal_mode mode;
	ev_signal resized;
	ev_signal stopped; // SIGTSTP
	ev_signal continued;
	struct exec *exec; // borrowed; NULL until it is connected
	int to;            // the process's keyboard; -1: none
	int from;          // its screen
	struct lane keys;
	struct lane screen;
};

/* ---- lanes ---- */

static void lane_stop(struct lane *lane)
{
	ev_io_stop(lane->terminal->loop, &lane->reads);
	ev_io_stop(lane->terminal->loop, &lane->writes);
}

static void lane_start(struct lane *lane)
{
	ev_io_start(lane->terminal->loop, lane->begin < lane->end ? &lane->writes : &lane->reads);
}

static void lane_end(struct lane *lane, bool has_ended)
{
	lane_stop(lane);
	lane->on_over(lane, has_ended);
}

static void lane_move(struct lane *lane)
{
	lane_stop(lane);
	lane_start(lane);
	if (lane->on_moved) {
		lane->on_moved(lane);
	}
}

static void on_lane_writable(struct ev_loop *loop, ev_io *io, int events)
{
	struct lane *lane = CONTAINER_OF(io, struct lane, writes);
	ssize_t count = write(io->fd, lane->bytes + lane->begin, lane->end - lane->begin);
	if (count < 0 && errno != EAGAIN && errno != EINTR) {
		lane_end(lane, false);
		return;
	}
	lane->begin += count > 0 ? (size_t)count : 0;
	if (count > 0) {
		lane_move(lane);
	}
}

static void on_lane_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct lane *lane = CONTAINER_OF(io, struct lane, reads);
	ssize_t count = read(io->fd, lane->bytes, sizeof(lane->bytes));
	if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (count <= 0) {
		lane_end(lane, true);
		return;
	}
	lane->begin = 0;
	lane->end = (size_t)count;
	lane_move(lane);
}

static void lane_init(struct lane *lane, struct login_terminal *terminal, int from, int to)
{
	lane->terminal = terminal;
	ev_io_init(&lane->reads, on_lane_readable, from, EV_READ);
	ev_io_init(&lane->writes, on_lane_writable, to, EV_WRITE);
}

static void fail(struct login_terminal *terminal)
{
	struct error err;
	error_set(&err, ERROR_UNAVAILABLE, "the terminal was closed");
	terminal->listener->on_failed(terminal->data, &err);
}

static void on_keys_over(struct lane *lane, bool has_ended)
{
	if (has_ended) {
		fail(lane->terminal);
	} // otherwise the process has closed its terminal, and its screen ends, too
}

static void on_screen_moved(struct lane *lane)
{
	lane->terminal->listener->on_output(lane->terminal->data);
}

static void on_screen_over(struct lane *lane, bool has_ended)
{
	struct login_terminal *terminal = lane->terminal;
	if (has_ended) {
		terminal->listener->on_shown(terminal->data);
	} else {
		fail(terminal);
	}
}

/* ---- the terminal ---- */

/* Only in own modes may the terminal change or echo what is typed. */
static void apply_mode(const struct login_terminal *terminal)
{
	struct termios modes = terminal->modes;
	if (terminal->mode != LOGIN_TERMINAL_OWN) {
		cfmakeraw(&modes);
	}
	if (terminal->mode == LOGIN_TERMINAL_WAITS || terminal->mode == LOGIN_TERMINAL_ENDS) {
		modes.c_lflag |= ISIG;
	}
	if (terminal->mode == LOGIN_TERMINAL_WAITS) {
		modes.c_oflag |= terminal->modes.c_oflag & OPOST;
	}
	tcsetattr(terminal->in.fd, TCSANOW, &modes);
}

static void restore_modes(const struct login_terminal *terminal)
{
	tcsetattr(terminal->in.fd, TCSANOW, &terminal->modes);
}

struct terminal_size login_terminal_size(const struct login_terminal *terminal)
{
	struct winsize window = {0};
	(void)!ioctl(terminal->out.fd, TIOCGWINSZ, &window);
	return (struct terminal_size){.rows = window.ws_row, .columns = window.ws_col};
}

static void tell_size(struct login_terminal *terminal)
{
	struct terminal_size size = login_terminal_size(terminal);
	exec_resize(terminal->exec, &size);
}

static void on_resized(struct ev_loop *loop, ev_signal *signal, int events)
{
	tell_size(CONTAINER_OF(signal, struct login_terminal, resized));
}

/*
 * A shell that gets the terminal meanwhile finds its own modes. The signal's default action stops
 * us, unless no shell could continue us.
 */
static void on_stopped(struct ev_loop *loop, ev_signal *signal, int events)
{
	const struct login_terminal *terminal =
		CONTAINER_OF(signal, struct login_terminal, stopped);
	restore_modes(terminal);
	ev_signal_stop(loop, signal);
	raise(SIGTSTP);
	ev_signal_start(loop, signal);
	apply_mode(terminal);
}

static void on_continued(struct ev_loop *loop, ev_signal *signal, int events)
{
	struct login_terminal *terminal = CONTAINER_OF(signal, struct login_terminal, continued);
	apply_mode(terminal);
	tell_size(terminal);
}

bool login_terminal_check(struct error *err)
{
	return (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) ||
	       error_set(err, ERROR_UNAVAILABLE,
		       "stdin and stdout are no terminal: start this login in a terminal");
}

struct login_terminal *login_terminal_create(struct ev_loop *loop,
	const struct login_terminal_listener *listener, void *data, struct error *err)
{
	struct termios modes;
	if (!login_terminal_check(err)) {
		return NULL;
	}
	if (tcgetattr(STDIN_FILENO, &modes) != 0) {
		error_set_errno(err, errno, "reading the modes of the terminal");
		return NULL;
	}
	struct login_terminal *terminal = mem_alloc_zero(sizeof(*terminal));
	*terminal = (struct login_terminal){.loop = loop,
		.listener = listener,
		.data = data,
		.modes = modes,
		.in = {.fd = -1},
		.out = {.fd = -1},
		.to = -1,
		.from = -1};
	ev_signal_init(&terminal->resized, on_resized, SIGWINCH);
	ev_signal_init(&terminal->stopped, on_stopped, SIGTSTP);
	ev_signal_init(&terminal->continued, on_continued, SIGCONT);
	if (!fd_inherited_init(&terminal->in, STDIN_FILENO, O_RDONLY, err) ||
		!fd_inherited_init(&terminal->out, STDOUT_FILENO, O_WRONLY, err)) {
		login_terminal_destroy(terminal);
		return NULL;
	}
	return terminal;
}

void login_terminal_connect(struct login_terminal *terminal, struct exec *exec)
{
	terminal->exec = exec;
	terminal->to = exec_take_stdin(exec);
	terminal->from = exec_take_stdout(exec);
	lane_init(&terminal->keys, terminal, terminal->in.fd, terminal->to);
	lane_init(&terminal->screen, terminal, terminal->from, terminal->out.fd);
	terminal->keys.on_over = on_keys_over;
	terminal->screen.on_moved = on_screen_moved;
	terminal->screen.on_over = on_screen_over;
	lane_start(&terminal->screen);
	ev_signal_start(terminal->loop, &terminal->resized);
	ev_signal_start(terminal->loop, &terminal->continued);
	if (!signal_is_ignored(SIGTSTP)) {
		ev_signal_start(terminal->loop, &terminal->stopped);
	}
	tell_size(terminal); // it may have changed since the start
}

void login_terminal_set_mode(struct login_terminal *terminal, enum login_terminal_mode mode)
{
	if (mode == terminal->mode) {
		return;
	}
	terminal->mode = mode;
	apply_mode(terminal);
	if (mode == LOGIN_TERMINAL_PASSES) {
		lane_start(&terminal->keys);
	} else {
		lane_stop(&terminal->keys);
	}
}

bool login_terminal_is_behind(const struct login_terminal *terminal)
{
	return terminal->screen.begin < terminal->screen.end;
}

void login_terminal_destroy(struct login_terminal *terminal)
{
	if (!terminal) {
		return;
	}
	if (terminal->exec) {
		login_terminal_set_mode(terminal, LOGIN_TERMINAL_OWN);
		lane_stop(&terminal->keys);
		lane_stop(&terminal->screen);
		ev_signal_stop(terminal->loop, &terminal->resized);
		ev_signal_stop(terminal->loop, &terminal->continued);
		ev_signal_stop(terminal->loop, &terminal->stopped);
	}
	fd_close(&terminal->to);
	fd_close(&terminal->from);
	fd_inherited_finish(&terminal->in);
	fd_inherited_finish(&terminal->out);
	free(terminal);
}
