/* SPDX-License-Identifier: MIT */
#include "providers/ssh/openssh.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/ssh/openssh_argv.h"

enum {
	TICK_MS = 100,      // between two checks whether ssh listens, if no event shows it
	GRACE_MS = 1000,    // added to our deadlines, so that ssh can report a timeout itself
	ADDRESSES_MAX = 8,  // of a host: ssh gives each address connect-timeout, and so do we
	ENDING_MS = 2000,   // from closing the control socket to the end of ssh
	READS_MAX = 64,     // for its last messages
	FIRST_QUESTION = 1, // the question whose answer shows that it is ready
};

static struct openssh_client *from_client(struct ssh_client *client)
{
	return CONTAINER_OF(client, struct openssh_client, client);
}

/* ---- end ---- */

static void stop_waiting(struct openssh_client *self)
{
	ev_io_stop(self->context->loop, &self->notify);
	fd_close(&self->notify_fd);
	ev_timer_stop(self->context->loop, &self->tick);
}

static void stop(struct openssh_client *self)
{
	stop_waiting(self);
	mux_close(&self->watch);
	ev_io_stop(self->context->loop, &self->words_io);
	fd_close(&self->words_fd);
	process_destroy(self->process);
	self->process = NULL;
	openssh_terminal_restore(&self->terminal);
	private_folder_remove(&self->folder.folder);
}

/* Notifies everybody. The client may be freed when this returns. */
static void lose(struct openssh_client *self, const struct error *err)
{
	struct error copy = *err; // a handler may free the original
	self->is_lost = true;
	stop(self);
	if (openssh_channels_lost(self, &copy)) {
		self->listener->on_lost(self->data, &copy);
	}
}

static void lose_ended(struct openssh_client *self, const char *ended)
{
	struct error err;
	const char *alias = self->target->alias;
	if (!self->is_ready) {
		openssh_words_explain(&self->words, ended, &err);
		error_prefix(&err, "connecting to %s", alias);
	} else {
		error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST",
			"the connection to %s was lost: ssh %s%s%s", alias, ended,
			self->words.said[0] ? ": " : "", self->words.said);
	}
	lose(self, &err);
}

static void lose_late(struct openssh_client *self)
{
	struct error err;
	if (self->is_ready) {
		lose_ended(self, "no longer answers");
		return;
	}
	const struct ssh_target *target = self->target;
	bool is_resolving = self->words.addresses == 0 && !target->via && !target->proxy_command;
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
		"%s %s: %s%s%snot done within %s%s%s",
		self->words.is_authenticating ? "authenticating to" : "connecting to",
		target->alias, is_resolving ? "resolving " : "", is_resolving ? target->host : "",
		is_resolving ? ": " : "", self->deadline_name, self->words.said[0] ? ": " : "",
		self->words.said);
	lose(self, &err);
}

/* ---- messages of ssh ---- */

enum heard { HEARD_WORDS, HEARD_NOTHING, HEARD_END };

static enum heard read_words(struct openssh_client *self)
{
	char bytes[16 * 1024];
	ssize_t count = self->words_fd >= 0 ? read(self->words_fd, bytes, sizeof(bytes)) : 0;
	if (count > 0) {
		openssh_words_read(&self->words, (struct span){bytes, (size_t)count});
		return HEARD_WORDS;
	}
	return count < 0 && io_is_transient(errno) ? HEARD_NOTHING : HEARD_END;
}

/*
 * The deadline covers hosts before the target, because connecting to them is part of connecting to
 * the target.
 */
static void set_deadline(struct openssh_client *self)
{
	const struct ssh_target *target = self->target;
	self->deadline_ms = clock_now_ms() + target->connect_timeout_ms + GRACE_MS;
	self->deadline_name = "connect-timeout";
	for (target = target->via; target; target = target->via) {
		self->deadline_ms += target->connect_timeout_ms + target->auth_timeout_ms;
	}
}

/* False if a handler has closed the client. */
static bool tell_refused(struct openssh_client *self)
{
	char text[OPENSSH_SAID_MAX + 64];
	if (!self->words.refused[0] || !self->listener->on_progress) {
		return true;
	}
	text_format(text, sizeof(text), "ssh does not forward a port of its configuration: %s",
		self->words.refused);
	self->words.refused[0] = '\0';
	struct life *life = life_hold(self->life);
	self->listener->on_progress(self->data, text);
	return !life_let_go(life);
}

static void on_words(struct ev_loop *loop, ev_io *io, int events)
{
	struct openssh_client *self = CONTAINER_OF(io, struct openssh_client, words_io);
	bool was_authenticating = self->words.is_authenticating;
	int addresses = self->words.addresses;
	if (read_words(self) == HEARD_END) {
		ev_io_stop(loop, io);
		fd_close(&self->words_fd);
		return;
	}
	if (!tell_refused(self)) {
		return;
	}
	if (self->words.addresses > addresses && self->words.addresses <= ADDRESSES_MAX) {
		set_deadline(self);
	}
	if (self->words.is_authenticating && !was_authenticating) {
		self->deadline_ms = clock_now_ms() + self->target->auth_timeout_ms + GRACE_MS;
		self->deadline_name = "auth-timeout";
	}
	if (self->words.has_progress && !self->is_ready) {
		self->words.has_progress = false;
		if (self->listener->on_progress) {
			self->listener->on_progress(self->data, self->words.progress);
		}
	}
}

/* ---- checking that it is alive ---- */

static void become_ready(struct openssh_client *self)
{
	stop_waiting(self);
	openssh_words_clear(&self->words);
	self->is_ready = true;
	self->terminal.is_kept = false; // other programs use the terminal from now on
	self->listener->on_ready(self->data);
}

static void on_watch_message(void *data, const struct mux_message *message)
{
	struct openssh_client *self = data;
	if (message->type != MUX_ALIVE) {
		return;
	}
	if (!self->is_ready) {
		become_ready(self);
	} else {
		openssh_channels_answered(self, message->id);
	}
}

/*
 * ssh is ending and will report the reason. Before ssh was ready, the socket may have been that of
 * another process.
 */
static void on_watch_end(void *data)
{
	struct openssh_client *self = data;
	mux_close(&self->watch);
	if (self->is_ready) {
		self->deadline_ms = clock_now_ms() + ENDING_MS;
		ev_timer_again(self->context->loop, &self->tick);
	}
}

static const struct mux_listener watch_listener = {
	.on_message = on_watch_message,
	.on_end = on_watch_end,
};

static void try_watch(struct openssh_client *self)
{
	struct ev_loop *loop = self->context->loop;
	if (self->watch.life || self->is_ready) {
		return;
	}
	self->last_question = FIRST_QUESTION;
	if (openssh_mux_open(
		    &self->watch, loop, self->folder.socket, &watch_listener, self, NULL) &&
		!mux_request_alive(&self->watch, FIRST_QUESTION, NULL)) {
		mux_close(&self->watch);
	}
}

static void on_notify(struct ev_loop *loop, ev_io *io, int events)
{
	struct openssh_client *self = CONTAINER_OF(io, struct openssh_client, notify);
	char ignored[4096];
	while (read(self->notify_fd, ignored, sizeof(ignored)) > 0) {
	}
	try_watch(self);
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct openssh_client *self = CONTAINER_OF(timer, struct openssh_client, tick);
	if (clock_now_ms() >= self->deadline_ms) {
		lose_late(self);
		return;
	}
	try_watch(self);
}

/* ---- the program ---- */

static void on_failed(void *data, const struct error *err)
{
	struct error copy = *err;
	struct openssh_client *self = data;
	error_prefix(&copy, "connecting to %s", self->target->alias);
	lose(self, &copy);
}

static void on_exited(void *data, struct process_status status)
{
	struct openssh_client *self = data;
	char text[64];
	for (int i = 0; i < READS_MAX && read_words(self) == HEARD_WORDS; i++) {
	}
	openssh_words_read(&self->words, SPAN_LITERAL("\n"));
	lose_ended(self, process_status_text(status, text, sizeof(text)));
}

static const struct process_listener process_listener = {
	.on_failed = on_failed,
	.on_exited = on_exited,
};

static bool start_program(struct openssh_client *self, int words_fd, struct error *err)
{
	const struct ssh_target *target = self->target;
	const char *const *environment = self->context->environment;
	const char *askpass =
		openssh_needs_askpass(target, environment) ? self->folder.askpass : NULL;
	if (askpass && !openssh_write_askpass(askpass, err)) {
		return false;
	}
	char **argv = openssh_argv(target, environment, self->folder.socket);
	char **env = openssh_env(target, environment, askpass);
	char folder[PATH_MAX];
	struct process_spec spec = {
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.cwd = ssh_folder(folder),
		.in = -1,
		.out = -1,
		.err = words_fd,
	};
	openssh_terminal_keep(&self->terminal, environment);
	self->process = process_start(self->context->spawner, &spec, &process_listener, self, err);
	words_free(argv);
	words_free(env);
	return self->process != NULL;
}

/* ---- connecting ---- */

/* If the system has no more watches, only the tick checks. */
static void watch_folder(struct openssh_client *self)
{
	self->notify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (self->notify_fd >= 0 && inotify_add_watch(self->notify_fd, self->folder.folder.path,
					    IN_CREATE | IN_MOVED_TO) >= 0) {
		ev_io_init(&self->notify, on_notify, self->notify_fd, EV_READ);
		ev_io_start(self->context->loop, &self->notify);
	} else {
		fd_close(&self->notify_fd);
	}
}

static bool make_folder(struct openssh_client *self, struct error *err)
{
	struct openssh_folder *folder = &self->folder;
	if (!private_folder_make(&folder->folder, "acp-ssh-", "ssh's control socket",
		    self->context->environment, err)) {
		return false;
	}
	text_whole(folder->socket, sizeof(folder->socket), "%s/s", folder->folder.path);
	text_whole(folder->askpass, sizeof(folder->askpass), "%s/ask", folder->folder.path);
	return true;
}

static bool start(struct openssh_client *self, struct error *err)
{
	int fds[2];
	if (!make_folder(self, err) || !fd_pipe(fds, err)) {
		return false;
	}
	self->words_fd = fds[0];
	bool is_ok = fd_set_nonblock(fds[0], true, err) && start_program(self, fds[1], err);
	fd_close(&fds[1]);
	if (!is_ok) {
		return false;
	}
	ev_io_init(&self->words_io, on_words, self->words_fd, EV_READ);
	ev_io_start(self->context->loop, &self->words_io);
	set_deadline(self);
	watch_folder(self);
	ev_timer_again(self->context->loop, &self->tick);
	return true;
}

static void openssh_close(struct ssh_client *client)
{
	struct openssh_client *self = from_client(client);
	openssh_channels_free(self);
	stop(self);
	openssh_words_finish(&self->words);
	life_end(self->life);
	free(self);
}

static const struct ssh_client_impl openssh_impl = {
	.name = "openssh",
	.close = openssh_close,
	.open = openssh_channel_open,
	.write = openssh_channel_write,
	.send_eof = openssh_channel_send_eof,
	.resume = openssh_channel_resume,
	.close_channel = openssh_channel_close,
};

static bool has_secret_user(const struct ssh_target *target)
{
	bool is_secret = false;
	for (; target && !is_secret; target = target->via) {
		is_secret = target->user_is_secret;
	}
	return is_secret;
}

struct ssh_client *ssh_openssh_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err)
{
	if (!target->ssh_program) {
		error_set_reason(err, ERROR_NOT_FOUND, "SSH_UNSUPPORTED",
			"connecting to %s: there is no ssh program on PATH; install it, or set "
			"ssh-client = libssh2",
			target->alias);
		return NULL;
	}
	if (has_secret_user(target)) {
		error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
			"connecting to %s: the login name is a secret, and ssh's command "
			"line would show it: set ssh-client = libssh2",
			target->alias);
		return NULL;
	}
	struct openssh_client *self = mem_alloc_zero(sizeof(*self));
	self->client.impl = &openssh_impl;
	self->context = context;
	self->target = target;
	self->listener = listener;
	self->data = data;
	self->life = life_begin();
	self->words_fd = self->notify_fd = -1;
	list_init(&self->channels);
	openssh_words_init(&self->words, target);
	ev_timer_init(&self->tick, on_tick, 0, TICK_MS / 1000.);
	if (!start(self, err)) {
		error_prefix(err, "connecting to %s", target->alias);
		openssh_close(&self->client);
		return NULL;
	}
	return &self->client;
}
