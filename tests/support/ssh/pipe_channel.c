/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/pipe_channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/libc.h"

enum { PIECE_MAX = 32 * 1024 };

bool pipe_is_frozen;

static struct pipe_channel *from_channel(struct ssh_channel *channel)
{
	return CONTAINER_OF(channel, struct pipe_channel, channel);
}

static bool is_frozen(const struct pipe_channel *self)
{
	return pipe_is_frozen || self->is_frozen;
}

static void later(struct pipe_channel *self)
{
	if (!is_frozen(self)) {
		ev_timer_start(self->client->loop, &self->later);
	}
}

static void watch(struct pipe_channel *self)
{
	struct ev_loop *loop = self->client->loop;
	for (int i = 0; i < 3; i++) {
		bool is_wanted = self->fds[i] >= 0 && !is_frozen(self) &&
		                 (i == 0 ? self->unsent.len > 0 || self->was_short
					 : !self->is_held_back[i - 1]);
		is_wanted ? ev_io_start(loop, &self->io[i]) : ev_io_stop(loop, &self->io[i]);
	}
}

static void close_fd(struct pipe_channel *self, int which)
{
	ev_io_stop(self->client->loop, &self->io[which]);
	fd_close(&self->fds[which]);
}

/* ---- events ---- */

static bool is_over(const struct pipe_channel *self)
{
	return self->status >= 0 && self->fds[1] < 0 && self->fds[2] < 0 &&
	       self->held[0].len + self->held[1].len == 0;
}

static void raise_closed(struct pipe_channel *self)
{
	struct ssh_channel_end end = {.is_known = !pipe_client_options.hides_end};
	if (end.is_known && WIFSIGNALED(self->status)) {
		end.signal = WTERMSIG(self->status);
	} else if (end.is_known) {
		end.code = WEXITSTATUS(self->status);
	}
	self->listener->on_closed(self->data, &end);
}

static struct pipe_channel *current; // NULL once closed by a handler

static void give(struct pipe_channel *self, enum ssh_stream stream)
{
	struct span bytes = buf_span(&self->held[stream]);
	current = self;
	size_t taken = self->listener->on_bytes(self->data, stream, bytes);
	if (current == self) {
		assert(taken <= bytes.len);
		buf_consume(&self->held[stream], taken);
		self->is_held_back[stream] = self->held[stream].len > 0;
		watch(self);
		later(self);
	}
}

static void on_later(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct pipe_channel *self = CONTAINER_OF(timer, struct pipe_channel, later);
	struct error err;
	ev_timer_stop(loop, timer);
	ev_timer_set(timer, 0., 0.);
	if (self->pid == 0) {
		enum error_code code = pipe_client_options.refusal;
		error_set(&err, code ? code : ERROR_LIMIT, "the server refuses a further channel");
		self->listener->on_refused(self->data, &err);
		return;
	}
	if (!self->was_opened) {
		self->was_opened = true;
		later(self);
		if (self->listener->on_open) {
			self->listener->on_open(self->data);
		}
		return;
	}
	for (int i = 0; i < 2; i++) {
		if (self->held[i].len > 0 && !self->is_held_back[i]) {
			give(self, (enum ssh_stream)i);
			return;
		}
	}
	if (is_over(self)) {
		raise_closed(self);
	}
}

static void on_output(struct ev_loop *loop, struct pipe_channel *self, int which)
{
	struct error err;
	struct buf *held = &self->held[which - 1];
	char *piece = buf_reserve(held, PIECE_MAX, &err);
	if (!piece) {
		return;
	}
	ssize_t count = read(self->fds[which], piece, PIECE_MAX);
	if (count > 0) {
		pipe_client_options.stderr_bytes += which == 2 ? (size_t)count : 0;
		buf_commit(held, (size_t)count);
		give(self, (enum ssh_stream)(which - 1));
	} else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
		close_fd(self, which);
		later(self);
		self->listener->on_eof(self->data, (enum ssh_stream)(which - 1));
	}
}

static void on_out(struct ev_loop *loop, ev_io *io, int events)
{
	on_output(loop, CONTAINER_OF(io, struct pipe_channel, io[1]), 1);
}

static void on_err(struct ev_loop *loop, ev_io *io, int events)
{
	on_output(loop, CONTAINER_OF(io, struct pipe_channel, io[2]), 2);
}

/* No pidfd: valgrind does not know them. */
static void on_exit_(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct pipe_channel *self = CONTAINER_OF(timer, struct pipe_channel, exit);
	if (waitpid(self->pid, &self->status, WNOHANG) == self->pid) {
		ev_timer_stop(loop, timer);
		later(self);
	}
}

/* ---- input ---- */

static void flush(struct pipe_channel *self)
{
	while (self->unsent.len > 0 && self->fds[0] >= 0 && !is_frozen(self)) {
		struct span bytes = buf_span(&self->unsent);
		ssize_t count = write(self->fds[0], bytes.data, bytes.len);
		if (count < 0 && errno == EAGAIN) {
			break;
		} else if (count < 0 && errno != EINTR) {
			buf_clear(&self->unsent); // nobody reads it
		} else if (count > 0) {
			buf_consume(&self->unsent, (size_t)count);
		}
	}
	if (self->wants_eof && self->unsent.len == 0) {
		close_fd(self, 0);
	}
	watch(self);
}

static void on_in(struct ev_loop *loop, ev_io *io, int events)
{
	struct pipe_channel *self = CONTAINER_OF(io, struct pipe_channel, io[0]);
	flush(self);
	if (self->was_short && self->unsent.len < SSH_CHANNEL_BUFFER / 2) {
		self->was_short = false;
		self->listener->on_writable(self->data);
	}
}

size_t pipe_write(struct ssh_channel *channel, struct span bytes)
{
	struct pipe_channel *self = from_channel(channel);
	struct error err;
	size_t room = SSH_CHANNEL_BUFFER - self->unsent.len;
	size_t taken = bytes.len < room ? bytes.len : room;
	bool is_taken = buf_append(&self->unsent, (struct span){bytes.data, taken}, &err);
	assert(is_taken);
	self->was_short = self->was_short || taken < bytes.len;
	flush(self);
	return taken;
}

void pipe_send_eof(struct ssh_channel *channel)
{
	from_channel(channel)->wants_eof = true;
	flush(from_channel(channel));
}

void pipe_resume(struct ssh_channel *channel, enum ssh_stream stream)
{
	struct pipe_channel *self = from_channel(channel);
	self->is_held_back[stream] = false;
	watch(self);
	later(self);
}

/* ---- channels ---- */

static void run(struct pipe_channel *self, const char *command, int theirs[3])
{
	if (!pipe_client_options.has_no_session) {
		setsid();
	}
	for (int i = 0; i < 3; i++) {
		dup2(theirs[i], i);
	}
	libc_close_range(3, ~0U, 0);
	signal(SIGPIPE, SIG_DFL);
	char home[4096];
	snprintf(home, sizeof(home), "HOME=%s",
		pipe_client_options.home ? pipe_client_options.home : "/root");
	char shell[4096];
	snprintf(shell, sizeof(shell), "SHELL=%s", pipe_client_options.shell);
	const char *env[32] = {"PATH=/usr/local/bin:/usr/bin:/bin", "USER=tester", "LOGNAME=tester",
		home, shell, NULL};
	size_t count = 5;
	for (const char *const *more = pipe_client_options.env; more && *more && count < 30;
		more++) {
		env[count++] = *more;
	}
	const char *argv[] = {pipe_client_options.shell, "-c", command, NULL};
	execve(argv[0], (char **)argv, (char **)env);
	_exit(126);
}

static void start(struct pipe_channel *self, const char *command)
{
	int pipes[3][2];
	struct error err;
	for (int i = 0; i < 3; i++) {
		bool is_made = fd_pipe(pipes[i], &err) &&
		               fd_set_nonblock(pipes[i][i == 0 ? 1 : 0], true, &err);
		assert(is_made);
	}
	int theirs[3] = {pipes[0][0], pipes[1][1], pipes[2][1]};
	for (int i = 0; i < 3; i++) {
		theirs[i] = fcntl(theirs[i], F_DUPFD_CLOEXEC, 10);
	}
	self->pid = fork();
	assert(self->pid >= 0);
	if (self->pid == 0) {
		run(self, command, theirs);
	}
	for (int i = 0; i < 3; i++) {
		self->fds[i] = pipes[i][i == 0 ? 1 : 0];
		close(pipes[i][i == 0 ? 0 : 1]);
		close(theirs[i]);
	}
	ev_io_init(&self->io[0], on_in, self->fds[0], EV_WRITE);
	ev_io_init(&self->io[1], on_out, self->fds[1], EV_READ);
	ev_io_init(&self->io[2], on_err, self->fds[2], EV_READ);
	ev_timer_init(&self->exit, on_exit_, 0.002, 0.002);
	ev_timer_start(self->client->loop, &self->exit);
}

static size_t channel_count(const struct pipe_client *client)
{
	size_t count = 0;
	LIST_FOR_EACH(channel, &client->channels, struct pipe_channel, link) {
		count += channel->pid > 0;
	}
	return count;
}

static bool is_second; // whether the next channel is refused, if every second one is

struct ssh_channel *pipe_open(struct ssh_client *client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err)
{
	struct pipe_client *owner = CONTAINER_OF(client, struct pipe_client, client);
	size_t max = pipe_client_options.max_sessions;
	for (const char *c = command; *c; c++) {
		assert(*c >= ' ' && *c <= '~' && *c != '!');
	}
	struct pipe_channel *self = mem_alloc_zero(sizeof(*self));
	self->channel.client = client;
	self->client = owner;
	self->listener = listener;
	self->data = data;
	self->status = -1;
	self->fds[0] = self->fds[1] = self->fds[2] = -1;
	buf_init(&self->unsent, SSH_CHANNEL_BUFFER);
	buf_init(&self->held[0], 4 * PIECE_MAX);
	buf_init(&self->held[1], 4 * PIECE_MAX);
	ev_timer_init(&self->later, on_later, pipe_client_options.open_delay_s, 0.);
	if (pipe_client_options.refusals > 0) {
		pipe_client_options.refusals--;
	} else if (pipe_client_options.second_is_refused && (is_second = !is_second, !is_second)) {
		/* follows one that was opened */
	} else if (max == 0 || channel_count(owner) < max) {
		start(self, command);
	}
	list_append(&owner->channels, &self->link);
	size_t now = channel_count(owner);
	size_t *most = &pipe_client_options.channel_count;
	*most = now > *most ? now : *most;
	watch(self);
	later(self);
	return &self->channel;
}

void pipe_close_channel(struct ssh_channel *channel)
{
	struct pipe_channel *self = from_channel(channel);
	if (current == self) {
		current = NULL;
	}
	ev_timer_stop(self->client->loop, &self->later);
	ev_timer_stop(self->client->loop, &self->exit);
	for (int i = 0; i < 3; i++) {
		close_fd(self, i);
		if (i < 2) {
			buf_finish(&self->held[i]);
		}
	}
	buf_finish(&self->unsent);
	list_remove(&self->link);
	free(self);
}

void pipe_channel_freeze(struct pipe_channel *self)
{
	watch(self);
	if (is_frozen(self)) {
		ev_timer_stop(self->client->loop, &self->later);
	} else {
		later(self);
	}
}
