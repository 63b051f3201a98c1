/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "providers/ssh/libssh2_client.h"

static struct ssh2_client *owner(const struct ssh2_channel *channel)
{
	return client_of(channel->base.client);
}

bool channel_is_live(const struct ssh2_channel *channel)
{
	return !channel->is_closed && channel->state != CHANNEL_ENDED && !owner(channel)->is_closed;
}

void channel_free(struct ssh2_channel *channel)
{
	if (owner(channel)->probe == channel) {
		owner(channel)->probe = NULL;
	}
	list_remove(&channel->link);
	owner(channel)->channel_count--;
	buf_finish(&channel->in);
	for (size_t i = 0; i < ARRAY_LENGTH(channel->streams); i++) {
		buf_finish(&channel->streams[i].rest);
	}
	free(channel->command);
	free(channel->host);
	free(channel);
}

void channel_refused(struct ssh2_channel *channel, enum error_code code, const char *why)
{
	bool is_live = channel_is_live(channel);
	struct error err;
	channel->state = CHANNEL_ENDED;
	if (is_live) {
		error_set(&err, code, "opening a channel to %s: %s", owner(channel)->target->alias,
			why);
		channel->listener->on_refused(channel->data, &err);
	}
}

/* ---- the command ---- */

static void start_command(struct ssh2_channel *channel)
{
	struct ssh2_client *client = owner(channel);
	int outcome = client->ssh2->channel_process_startup(channel->handle, "exec",
		sizeof("exec") - 1, channel->command, (unsigned int)strlen(channel->command));
	if (outcome == LIBSSH2_ERROR_EAGAIN) {
		return;
	}
	if (outcome == LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED ||
		outcome == LIBSSH2_ERROR_CHANNEL_FAILURE) {
		channel_refused(channel, ERROR_UNAVAILABLE, "the server refuses to run a command");
		return;
	}
	client_check(client, outcome);
	if (outcome == 0) {
		channel->state = CHANNEL_RUNNING;
		if (channel_is_live(channel) && channel->listener->on_open) {
			channel->listener->on_open(channel->data);
		}
	}
}

/* ---- its input ---- */

/* True: more can be written now. */
static bool write_some(struct ssh2_channel *channel)
{
	struct ssh2_client *client = owner(channel);
	struct span bytes = buf_span(&channel->in);
	unsigned long window = client->ssh2->channel_window_write_ex(channel->handle, NULL);
	if (bytes.len == 0 || window == 0) {
		return false;
	}
	if (client->out.len >= OUTPUT_MARK) {
		client->awaits_room = true;
		return false;
	}
	/* After EAGAIN the library must be called with the same number of bytes again. */
	size_t size = bytes.len < CHANNEL_PACKET ? bytes.len : CHANNEL_PACKET;
	size = channel->in_committed > 0 ? channel->in_committed : size;
	ssize_t count = client->ssh2->channel_write_ex(channel->handle, 0, bytes.data, size);
	channel->in_committed = count == LIBSSH2_ERROR_EAGAIN ? size : 0;
	if (count > 0) {
		buf_consume(&channel->in, (size_t)count);
		return true;
	}
	if (count < 0 && count != LIBSSH2_ERROR_EAGAIN) {
		/* The server takes no more input; on_closed or on_lost gives the reason. */
		buf_clear(&channel->in);
		client_check(client, count);
	}
	return false;
}

static void write_input(struct ssh2_channel *channel)
{
	struct ssh2_client *client = owner(channel);
	size_t written = 0;
	while (written < CHANNEL_TURN_MAX) {
		size_t before = channel->in.len;
		if (!write_some(channel)) {
			break;
		}
		written += before - channel->in.len;
	}
	client->wants_turn = client->wants_turn || written >= CHANNEL_TURN_MAX;
	if (channel->in.len == 0 && channel->wants_eof && !channel->has_sent_eof) {
		int outcome = client->ssh2->channel_send_eof(channel->handle);
		channel->has_sent_eof = outcome != LIBSSH2_ERROR_EAGAIN;
		client_check(client, outcome);
	}
	if (channel->was_short && channel->in.len <= SSH_CHANNEL_BUFFER / 2 &&
		channel_is_live(channel)) {
		channel->was_short = false;
		if (channel->listener->on_writable) {
			channel->listener->on_writable(channel->data);
		}
	}
}

/* ---- its output ---- */

static const int stream_ids[] = {
	[SSH_STREAM_OUT] = 0,
	[SSH_STREAM_ERR] = SSH_EXTENDED_DATA_STDERR,
};

/* Gives the bytes to the listener. Keeps those that it does not take, and holds the stream. */
static void deliver(struct ssh2_channel *channel, enum ssh_stream stream, struct span bytes)
{
	struct ssh2_stream *at = &channel->streams[stream];
	size_t taken = channel->listener->on_bytes(channel->data, stream, bytes);
	assert(taken <= bytes.len);
	if (taken < bytes.len && channel_is_live(channel)) {
		at->is_held = true;
		/* At most the bytes of one read, because we read nothing while there is a rest. */
		buf_add(&at->rest, (struct span){bytes.data + taken, bytes.len - taken});
	}
}

/* False: the listener takes no more now. */
static bool deliver_rest(struct ssh2_channel *channel, enum ssh_stream stream)
{
	struct ssh2_stream *at = &channel->streams[stream];
	if (at->is_held || at->rest.len == 0) {
		return !at->is_held;
	}
	struct buf rest = at->rest;
	buf_init(&at->rest, CHANNEL_READ_SIZE);
	deliver(channel, stream, buf_span(&rest));
	buf_finish(&rest);
	return channel_is_live(channel) && !at->is_held;
}

/*
 * Allows the server to send as many bytes as the listener has taken. libssh2 itself does so only
 * after a quarter of the window was taken, and over a slow path the server would wait for that.
 * False: libssh2 cannot send this now, because both sides are agreeing on new keys; read nothing
 * until it can. It sends the amount of the first call but counts that of the last call, and reading
 * in between would make them differ.
 */
static bool widen_window(struct ssh2_channel *channel)
{
	struct ssh2_client *client = owner(channel);
	unsigned long window = client->ssh2->channel_window_read_ex(channel->handle, NULL, NULL);
	if (channel->widening == 0 && window + CHANNEL_WINDOW_STEP <= CHANNEL_WINDOW) {
		channel->widening = CHANNEL_WINDOW - window;
	}
	if (channel->widening == 0) {
		return true;
	}
	int outcome = client->ssh2->channel_receive_window_adjust2(
		channel->handle, channel->widening, 0, NULL);
	client_check(client, outcome);
	channel->widening = outcome == LIBSSH2_ERROR_EAGAIN ? channel->widening : 0;
	return outcome == 0;
}

static void read_stream(struct ssh2_channel *channel, enum ssh_stream stream)
{
	struct ssh2_client *client = owner(channel);
	size_t moved = 0;
	while (channel_is_live(channel) && deliver_rest(channel, stream)) {
		if (moved >= CHANNEL_TURN_MAX) {
			client->wants_turn = true;
			return;
		}
		if (!widen_window(channel)) {
			return;
		}
		ssize_t count = client->ssh2->channel_read_ex(
			channel->handle, stream_ids[stream], client->read_space, CHANNEL_READ_SIZE);
		if (count <= 0) {
			client_check(client, count);
			return;
		}
		moved += (size_t)count;
		deliver(channel, stream, (struct span){client->read_space, (size_t)count});
	}
}

/* ---- its end ---- */

/* RFC 4254, 6.10: the names of signals, without SIG. */
static int signal_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} names[] = {
		{"ABRT", SIGABRT},
		{"ALRM", SIGALRM},
		{"FPE", SIGFPE},
		{"HUP", SIGHUP},
		{"ILL", SIGILL},
		{"INT", SIGINT},
		{"KILL", SIGKILL},
		{"PIPE", SIGPIPE},
		{"QUIT", SIGQUIT},
		{"SEGV", SIGSEGV},
		{"TERM", SIGTERM},
		{"USR1", SIGUSR1},
		{"USR2", SIGUSR2},
		{"BUS", SIGBUS},
		{"XCPU", SIGXCPU},
		{"XFSZ", SIGXFSZ},
		{"SYS", SIGSYS},
		{"TRAP", SIGTRAP},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (strcmp(name, names[i].name) == 0) {
			return names[i].number;
		}
	}
	return 0;
}

/* libssh2 returns the status 0 both if the server has sent 0 and if it has sent no status. */
static struct ssh_channel_end read_end(struct ssh2_channel *channel)
{
	struct ssh2_client *client = owner(channel);
	struct ssh_channel_end end = {
		.code = client->ssh2->channel_get_exit_status(channel->handle)};
	char *name = NULL;
	size_t len = 0;
	(void)client->ssh2->channel_get_exit_signal(
		channel->handle, &name, &len, NULL, NULL, NULL, NULL);
	if (name) {
		end.signal = signal_number(name);
		client->ssh2->free(client->session, name);
	}
	end.is_known = end.code != 0 || end.signal != 0;
	return end;
}

static void tell_eof(struct ssh2_channel *channel, enum ssh_stream stream)
{
	struct ssh2_stream *at = &channel->streams[stream];
	if (!at->was_eof && at->rest.len == 0 && channel_is_live(channel)) {
		at->was_eof = true;
		if (channel->listener->on_eof) {
			channel->listener->on_eof(channel->data, stream);
		}
	}
}

static void look_for_end(struct ssh2_channel *channel)
{
	struct ssh2_client *client = owner(channel);
	/*
	 * True after the server has sent the end, and we have read everything of both streams.
	 */
	if (!client->ssh2->channel_eof(channel->handle)) {
		return;
	}
	tell_eof(channel, SSH_STREAM_OUT);
	tell_eof(channel, SSH_STREAM_ERR);
	if (!channel->streams[SSH_STREAM_OUT].was_eof ||
		!channel->streams[SSH_STREAM_ERR].was_eof || !channel_is_live(channel)) {
		return;
	}
	int outcome = client->ssh2->channel_wait_closed(channel->handle);
	if (outcome == 0) {
		struct ssh_channel_end end = read_end(channel);
		channel->state = CHANNEL_ENDED;
		channel->listener->on_closed(channel->data, &end);
	} else {
		client_check(client, outcome);
	}
}

/* Frees a channel that its user has closed, as soon as the server has answered. */
static void let_go(struct ssh2_channel *channel)
{
	struct ssh2_client *client = owner(channel);
	if (channel->state == CHANNEL_OPENING) {
		return;
	}
	if (channel->handle) {
		int outcome = client->ssh2->channel_free(channel->handle);
		if (outcome == LIBSSH2_ERROR_EAGAIN) {
			return;
		}
		channel->handle = NULL;
	}
	channel_free(channel);
}

void channel_step(struct ssh2_channel *channel)
{
	if (channel->is_closed) {
		let_go(channel);
		return;
	}
	if (channel->state == CHANNEL_STARTING) {
		start_command(channel);
	}
	if (channel->state != CHANNEL_RUNNING || channel->is_closed) {
		return;
	}
	write_input(channel);
	read_stream(channel, SSH_STREAM_OUT);
	read_stream(channel, SSH_STREAM_ERR);
	if (channel_is_live(channel)) {
		look_for_end(channel);
	}
}

/* ---- for its user ---- */

size_t ssh2_write(struct ssh_channel *base, struct span bytes)
{
	struct ssh2_channel *channel = channel_of(base);
	size_t room = SSH_CHANNEL_BUFFER - channel->in.len;
	size_t size = bytes.len < room ? bytes.len : room;
	if (channel->state == CHANNEL_ENDED || channel->wants_eof) {
		return bytes.len; // dropped: nobody reads it any more
	}
	if (size > 0 && !buf_append(&channel->in, (struct span){bytes.data, size}, NULL)) {
		size = 0;
	}
	channel->was_short = channel->was_short || size < bytes.len;
	client_ask_turn(owner(channel));
	return size;
}

/*
 * The packets go into client.out, which the end of the session sends. sshd drops them if it reads a
 * disconnect message together with them; if it reads the end of the connection, it passes them on.
 */
void ssh2_flush(struct ssh_channel *base)
{
	struct ssh2_channel *channel = channel_of(base);
	struct ssh2_client *client = owner(channel);
	client->ends_silently = true;
	bool is_up = client->stage == CLIENT_READY && !client->has_error;
	for (size_t left = SSH_CHANNEL_BUFFER / CHANNEL_PACKET; is_up && left > 0; left--) {
		is_up = channel->state == CHANNEL_RUNNING && channel_is_live(channel) &&
		        write_some(channel);
	}
}

void ssh2_send_eof(struct ssh_channel *base)
{
	channel_of(base)->wants_eof = true;
	client_ask_turn(client_of(base->client));
}

void ssh2_resume(struct ssh_channel *base, enum ssh_stream stream)
{
	channel_of(base)->streams[stream].is_held = false;
	client_ask_turn(client_of(base->client));
}

void ssh2_close_channel(struct ssh_channel *base)
{
	struct ssh2_channel *channel = channel_of(base);
	assert(!channel->is_closed);
	channel->is_closed = true;
	buf_finish(&channel->in);
	client_ask_turn(owner(channel));
}
