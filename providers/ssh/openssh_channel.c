/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "providers/ssh/openssh_channel.h"

static struct openssh_channel *from_channel(struct ssh_channel *channel)
{
	return CONTAINER_OF(channel, struct openssh_channel, channel);
}

static struct ev_loop *loop_of(const struct openssh_channel *self)
{
	return self->client->context->loop;
}

/* ---- end ---- */

static void close_in(struct openssh_channel *self)
{
	ev_io_stop(loop_of(self), &self->in_io);
	fd_close(&self->in_fd);
	buf_clear(&self->in);
}

static void stop(struct openssh_channel *self)
{
	self->is_over = true;
	mux_close(&self->mux);
	close_in(self);
	for (size_t i = 0; i < ARRAY_LENGTH(self->outputs); i++) {
		ev_io_stop(loop_of(self), &self->outputs[i].io);
		fd_close(&self->outputs[i].fd);
	}
}

void openssh_channel_ask(struct openssh_channel *self)
{
	self->question = ++self->client->last_question;
	/* If the master cannot be asked, it is ending, and all channels are notified. */
	(void)!mux_request_alive(&self->client->watch, self->question, NULL);
}

static void raise_refused(struct openssh_channel *self, struct span why)
{
	struct error err;
	bool is_limit = why.len > 0 && memmem(why.data, why.len, "refused", 7);
	error_set(&err, is_limit ? ERROR_LIMIT : ERROR_UNAVAILABLE,
		"%s opens no further channel: %.*s", self->client->target->alias, (int)why.len,
		why.len > 0 ? why.data : "");
	stop(self);
	self->listener->on_refused(self->data, &err);
}

static struct openssh_channel *next_answered(struct openssh_client *client, uint32_t question)
{
	LIST_FOR_EACH(self, &client->channels, struct openssh_channel, link) {
		if (!self->is_over && self->question != 0 && self->question <= question) {
			return self;
		}
	}
	return NULL;
}

/* Reports the end, now that ssh has shown that it is alive. */
static void tell_ends(struct openssh_channel *self)
{
	if (!self->is_open) {
		raise_refused(self, SPAN_LITERAL("ssh does not give the reason"));
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(self->outputs); i++) {
		struct openssh_output *output = &self->outputs[i];
		if (output->fd >= 0 || output->was_told_end) {
			continue;
		}
		output->was_told_end = true;
		struct life *life = life_hold(self->life);
		if (self->listener->on_eof) {
			self->listener->on_eof(self->data, output->stream);
		}
		if (life_let_go(life) || self->is_over) {
			return;
		}
	}
	if (self->mux_has_ended && self->outputs[0].was_told_end && self->outputs[1].was_told_end) {
		struct ssh_channel_end end = self->end; // its user may free this struct
		stop(self);
		self->listener->on_closed(self->data, &end);
	}
}

void openssh_channels_answered(struct openssh_client *client, uint32_t question)
{
	struct openssh_channel *self;
	while ((self = next_answered(client, question))) {
		struct life *life = life_hold(client->life);
		self->question = 0;
		tell_ends(self);
		if (life_let_go(life)) {
			return;
		}
	}
}

static struct openssh_channel *next_living(struct openssh_client *client)
{
	LIST_FOR_EACH(self, &client->channels, struct openssh_channel, link) {
		if (!self->is_over) {
			return self;
		}
	}
	return NULL;
}

bool openssh_channels_lost(struct openssh_client *client, const struct error *err)
{
	struct openssh_channel *self;
	while ((self = next_living(client))) {
		struct life *life = life_hold(client->life);
		stop(self);
		if (self->listener->on_lost) {
			self->listener->on_lost(self->data, err);
		}
		if (life_let_go(life)) {
			return false;
		}
	}
	return true;
}

/* ---- messages of ssh ---- */

static void on_message(void *data, const struct mux_message *message)
{
	struct openssh_channel *self = data;
	switch ((enum mux_type)message->type) {
	case MUX_SESSION_OPENED:
		self->is_open = true;
		ev_io_start(loop_of(self), &self->outputs[0].io);
		ev_io_start(loop_of(self), &self->outputs[1].io);
		if (self->listener->on_open) {
			self->listener->on_open(self->data);
		}
		return;
	case MUX_FAILURE:
	case MUX_PERMISSION_DENIED:
		raise_refused(self, message->text);
		return;
	case MUX_EXIT_MESSAGE:
		self->end = (struct ssh_channel_end){
			.is_known = true, .code = (int)(message->value & 0xff)};
		return;
	default:
		return;
	}
}

static void on_mux_end(void *data)
{
	struct openssh_channel *self = data;
	self->mux_has_ended = true;
	openssh_channel_ask(self);
}

static const struct mux_listener mux_listener = {.on_message = on_message, .on_end = on_mux_end};

/* ---- input ---- */

/* Returns how many bytes are done. Input that the command no longer reads is dropped. */
static size_t write_in(struct openssh_channel *self, struct span bytes)
{
	ssize_t count = bytes.len > 0 ? write(self->in_fd, bytes.data, bytes.len) : 0;
	if (count >= 0) {
		return (size_t)count;
	}
	if (io_is_transient(errno)) {
		return 0;
	}
	close_in(self);
	return bytes.len;
}

static void on_writable(struct ev_loop *loop, ev_io *io, int events)
{
	struct openssh_channel *self = CONTAINER_OF(io, struct openssh_channel, in_io);
	size_t count = write_in(self, buf_span(&self->in));
	if (self->in_fd >= 0) {
		buf_consume(&self->in, count);
	}
	if (self->in.len == 0) {
		ev_io_stop(loop, &self->in_io);
		if (self->wants_eof) {
			close_in(self);
		}
	}
	if (self->was_short && self->in.len < self->in.max) {
		self->was_short = false;
		if (self->listener->on_writable) {
			self->listener->on_writable(self->data);
		}
	}
}

size_t openssh_channel_write(struct ssh_channel *channel, struct span bytes)
{
	struct openssh_channel *self = from_channel(channel);
	size_t taken = 0;
	if (self->in_fd >= 0 && self->in.len == 0) {
		taken = write_in(self, bytes);
	}
	if (self->in_fd < 0) {
		return bytes.len;
	}
	size_t room = self->in.max - self->in.len;
	size_t more = bytes.len - taken < room ? bytes.len - taken : room;
	if (more > 0) {
		buf_add(&self->in, (struct span){bytes.data + taken, more});
		ev_io_start(loop_of(self), &self->in_io);
	}
	self->was_short = self->was_short || taken + more < bytes.len;
	return taken + more;
}

void openssh_channel_send_eof(struct ssh_channel *channel)
{
	struct openssh_channel *self = from_channel(channel);
	self->wants_eof = true;
	if (self->in.len == 0) {
		close_in(self);
	}
}

/* ---- start ---- */

/* Makes three pipes. Our ends do not block; the other ends are for ssh. */
static bool make_pipes(int ours[3], int theirs[3], struct error *err)
{
	for (int i = 0; i < 3; i++) {
		int fds[2];
		if (!fd_pipe(fds, err)) {
			return false;
		}
		ours[i] = fds[i == 0];
		theirs[i] = fds[i != 0];
		if (!fd_set_nonblock(ours[i], true, err)) {
			return false;
		}
	}
	return true;
}

static bool start(struct openssh_channel *self, const char *command, struct error *err)
{
	struct openssh_client *client = self->client;
	int ours[3] = {-1, -1, -1}, theirs[3] = {-1, -1, -1};
	bool forwards_agent =
		client->target->forwards_agent && ssh_target_has_forwards(client->target);
	bool is_ok = make_pipes(ours, theirs, err);
	self->in_fd = ours[0];
	openssh_output_init(self, SSH_STREAM_OUT, ours[1]);
	openssh_output_init(self, SSH_STREAM_ERR, ours[2]);
	ev_io_init(&self->in_io, on_writable, ours[0], EV_WRITE);
	is_ok = is_ok &&
	        openssh_mux_open(&self->mux, client->context->loop, client->folder.socket,
			&mux_listener, self, err) &&
	        mux_request_session(&self->mux, command, theirs, forwards_agent, err);
	for (int i = 0; i < 3; i++) {
		fd_close(&theirs[i]);
	}
	return is_ok || error_prefix(err, "opening a channel to %s", client->target->alias);
}

struct ssh_channel *openssh_channel_open(struct ssh_client *ssh_client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err)
{
	struct openssh_client *client = CONTAINER_OF(ssh_client, struct openssh_client, client);
	assert(client->is_ready);
	struct openssh_channel *self = mem_alloc_zero(sizeof(*self));
	self->channel.client = ssh_client;
	self->client = client;
	self->listener = listener;
	self->data = data;
	self->life = life_begin();
	buf_init(&self->in, SSH_CHANNEL_BUFFER);
	list_append(&client->channels, &self->link);
	if (!start(self, command, err)) {
		openssh_channel_close(&self->channel);
		return NULL;
	}
	return &self->channel;
}

void openssh_channel_close(struct ssh_channel *channel)
{
	struct openssh_channel *self = from_channel(channel);
	stop(self);
	list_remove(&self->link);
	buf_finish(&self->in);
	for (size_t i = 0; i < ARRAY_LENGTH(self->outputs); i++) {
		openssh_output_finish(&self->outputs[i]);
	}
	life_end(self->life);
	free(self);
}

void openssh_channels_free(struct openssh_client *client)
{
	LIST_FOR_EACH(self, &client->channels, struct openssh_channel, link) {
		openssh_channel_close(&self->channel);
	}
}
