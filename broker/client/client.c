/* SPDX-License-Identifier: MIT */
#include "broker/client/client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acp/failure.h"
#include "acp/link.h"
#include "acp/places.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/mask.h"
#include "base/text.h"

enum { ID_DIGITS_MAX = 18 };

struct client {
	struct client_config config;
	struct json_places *places;
	struct link link;
	struct ev_signal child;
	struct ev_timer drain; // runs once the program has ended
	pid_t pid;
	int status;            // from waitpid
	bool has_exited;       // status is set
	bool output_ended;     // no more bytes will come
	bool was_told;         // on_ended was called
	unsigned heard;        // frames
	unsigned heard_before; // frames at the last expiry of drain
	struct error failure;
};

/* ---- the end ---- */

static void check_ended(struct client *client)
{
	if (!client->has_exited || !client->output_ended || client->was_told) {
		return;
	}
	client->was_told = true;
	ev_timer_stop(client->config.loop, &client->drain);
	bool was_killed = WIFSIGNALED(client->status);
	struct client_end end = {
		.code = was_killed ? 0 : WEXITSTATUS(client->status),
		.signal = was_killed ? WTERMSIG(client->status) : 0,
		.err = client->failure.code != ERROR_NONE ? &client->failure : NULL,
	};
	client->config.listener->on_ended(client->config.data, &end);
}

static void on_child(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct client *client = watcher->data;
	if (client->has_exited || waitpid(client->pid, &client->status, WNOHANG) != client->pid) {
		return;
	}
	client->has_exited = true;
	ev_signal_stop(loop, watcher);
	ev_timer_start(loop, &client->drain);
	check_ended(client);
}

static void on_drain_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct client *client = timer->data;
	bool goes_on = client->heard != client->heard_before; // the pipe has unread bytes
	client->heard_before = client->heard;
	if (goes_on || link_is_paused(&client->link)) { // waiting messages are read later
		ev_timer_set(timer, client->config.drain_ms / 1000.0, 0);
		ev_timer_start(loop, timer);
		return;
	}
	client->output_ended = true;
	check_ended(client);
}

/* ---- the link ---- */

/*
 * The messages come from a broker: a line that is not a message is a defect, and answers may be
 * missing.
 */
static bool fail(struct client *client, const struct error *err)
{
	if (client->failure.code == ERROR_NONE) {
		client->failure = *err;
	}
	client_close(client);
	return true;
}

static bool on_frame(void *data, const struct frame *frame)
{
	struct client *client = data;
	struct message message;
	struct error err;
	client->heard++;
	if (frame->kind != FRAME_MESSAGE) {
		return fail(client, &frame->error);
	}
	if (!message_read(&message, frame, &err)) {
		return fail(client, &err);
	}
	return client->config.listener->on_message(client->config.data, &message);
}

static void on_end(void *data, const struct error *err)
{
	struct client *client = data;
	if (err) {
		fail(client, err);
	}
	client->output_ended = true;
	check_ended(client);
}

/* The program has ended, or is about to; its end is reported then. */
static void on_broken(void *data, const struct error *err)
{
}

static void on_quiet(void *data)
{
}

static const struct link_listener link_listener = {
	.on_frame = on_frame,
	.on_end = on_end,
	.on_broken = on_broken,
	.on_drained = on_quiet,
	.on_flushed = on_quiet,
};

/* ---- the start ---- */

static int spawn(pid_t *pid, const struct client_config *config, int in, int out)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	sigset_t signals;
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_init(&actions);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(
		&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	int errnum = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (errnum == 0) {
		errnum = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	}
	if (errnum == 0 && config->is_quiet) {
		errnum = posix_spawn_file_actions_addopen(
			&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	}
	if (errnum == 0 && !config->is_quiet && config->stderr_fd > 0) {
		errnum = posix_spawn_file_actions_adddup2(
			&actions, config->stderr_fd, STDERR_FILENO);
	}
	if (errnum == 0) {
		errnum = posix_spawn(pid, config->argv[0], &actions, &attributes,
			(char *const *)config->argv, (char *const *)config->environment);
	}
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return errnum;
}

static bool start(struct client *client, struct error *err)
{
	int in[2] = {-1, -1};
	int out[2] = {-1, -1};
	bool ok = fd_pipe(in, err) && fd_pipe(out, err) && fd_set_nonblock(in[1], true, err) &&
	          fd_set_nonblock(out[0], true, err);
	int errnum = ok ? spawn(&client->pid, &client->config, in[0], out[1]) : 0;
	fd_close(&in[0]);
	fd_close(&out[1]);
	if (ok && errnum == 0) {
		link_connect(&client->link, out[0], in[1]);
		return true;
	}
	fd_close(&in[1]);
	fd_close(&out[0]);
	return ok ? error_set_errno(err, errnum, "starting %s", client->config.argv[0]) : false;
}

struct client *client_create(const struct client_config *config, struct error *err)
{
	struct client *client = mem_alloc_zero(sizeof(*client));
	client->config = *config;
	client->places = places_create();
	struct link_config link_config = {
		.loop = config->loop,
		.places = client->places,
		.max_message = config->max_message,
		.max_queue = config->max_message,
		.listener = &link_listener,
		.data = client,
	};
	link_init(&client->link, &link_config);
	ev_signal_init(&client->child, on_child, SIGCHLD);
	client->child.data = client;
	ev_timer_init(&client->drain, on_drain_due, config->drain_ms / 1000.0, 0);
	client->drain.data = client;
	ev_set_priority(&client->drain, EV_MINPRI);    // earlier output is read first
	ev_signal_start(config->loop, &client->child); // before the child can exit
	if (start(client, err)) {
		return client;
	}
	client_destroy(client);
	return NULL;
}

void client_destroy(struct client *client)
{
	if (!client) {
		return;
	}
	ev_signal_stop(client->config.loop, &client->child);
	ev_timer_stop(client->config.loop, &client->drain);
	link_close(&client->link);
	link_finish(&client->link);
	json_places_destroy(client->places);
	free(client);
}

char *client_own_program(void)
{
	static const char own[] = "/proc/self/exe";
	char path[PATH_MAX];
	struct stat here;
	struct stat there;
	ssize_t len = readlink(own, path, sizeof(path) - 1);
	if (len > 0 && stat(own, &here) == 0) {
		path[len] = '\0';
		if (stat(path, &there) == 0 && here.st_dev == there.st_dev &&
			here.st_ino == there.st_ino) {
			return mem_strdup(path);
		}
	}
	return mem_strdup(own);
}

/* ---- messages ---- */

/* Writes one or two members of the envelope each; then the whole is sent. */
static void send_begin(struct json_writer *writer, struct buf *out)
{
	buf_init(out, SIZE_MAX / 2);
	json_write_begin(writer, out);
	json_write_object(writer);
	json_write_member(writer, "jsonrpc", "2.0");
}

static void send_end(struct client *client, struct json_writer *writer)
{
	json_write_object_end(writer);
	bool ok = json_write_end(writer, NULL);
	assert(ok); // the buffer has no maximum
	(void)ok;
	link_send_taken(&client->link, writer->out);
	buf_finish(writer->out);
}

void client_request(struct client *client, long id, const char *method, struct span params)
{
	struct buf out;
	struct json_writer writer;
	send_begin(&writer, &out);
	json_write_member_int(&writer, "id", id);
	json_write_member(&writer, "method", method);
	json_write_member_raw(&writer, "params", params);
	send_end(client, &writer);
}

void client_notify(struct client *client, const char *method, struct span params)
{
	struct buf out;
	struct json_writer writer;
	send_begin(&writer, &out);
	json_write_member(&writer, "method", method);
	json_write_member_raw(&writer, "params", params);
	send_end(client, &writer);
}

void client_answer(struct client *client, struct span id, struct span result)
{
	struct buf out;
	struct json_writer writer;
	send_begin(&writer, &out);
	json_write_member_raw(&writer, "id", id);
	json_write_member_raw(&writer, "result", result);
	send_end(client, &writer);
}

void client_refuse_method(struct client *client, struct span id, const char *method)
{
	struct buf out;
	struct json_writer writer;
	send_begin(&writer, &out);
	json_write_member_raw(&writer, "id", id);
	json_write_key(&writer, "error");
	json_write_object(&writer);
	json_write_member_int(&writer, "code", RPC_METHOD_NOT_FOUND);
	json_write_key(&writer, "message");
	char text[MESSAGE_METHOD_MAX + 64];
	text_format(text, sizeof(text), "this client does not serve %s", method);
	json_write_text(&writer, text);
	json_write_object_end(&writer);
	send_end(client, &writer);
}

long client_id_of(const struct message *message)
{
	char digits[ID_DIGITS_MAX + 1];
	char *end;
	if (message->kind != MESSAGE_RESPONSE || message->id.len == 0 ||
		message->id.len > ID_DIGITS_MAX) {
		return -1;
	}
	memcpy(digits, message->id.data, message->id.len);
	digits[message->id.len] = '\0';
	long id = strtol(digits, &end, 10);
	return *end || id < 0 ? -1 : id;
}

void client_resume(struct client *client)
{
	link_resume(&client->link);
}

void client_close(struct client *client)
{
	link_finish_output(&client->link);
}

void client_signal(struct client *client, int signal)
{
	if (!client->has_exited) {
		kill(client->pid, signal);
	}
}

/* ---- errors ---- */

/* One line without control characters. */
static char *string_as_line(const struct json_doc *doc, const char *path)
{
	char *text = json_string(doc, json_path(doc, 0, path));
	char *line = text ? mask_line(span_of(text)) : NULL;
	free(text);
	return line;
}

static const char *find_reason(
	const char *code, const struct error_reason *reasons, size_t reason_count)
{
	const struct failure_code *known = failure_code_find(code);
	for (size_t i = 0; !known && i < reason_count; i++) {
		if (strcmp(reasons[i].name, code) == 0) {
			return reasons[i].name;
		}
	}
	return known ? known->name : NULL;
}

bool client_error_read(struct error *err, struct span error, const struct error_reason *reasons,
	size_t reason_count)
{
	struct json_doc *doc = json_doc_parse_unchecked(error, NULL);
	if (!doc) { // its data is too large to parse
		return error_set_reason(
			err, ERROR_PROTOCOL, CLIENT_AGENT_ERROR, "an error without a message");
	}
	long long number = json_int(doc, json_get(doc, 0, "code"), 0);
	char *message = string_as_line(doc, "message");
	char *code = string_as_line(doc, "data.code");
	char *stage = string_as_line(doc, "data.stage");
	char *detail = string_as_line(doc, "data.detail");
	bool is_ours = code && stage;
	const char *reason = is_ours ? find_reason(code, reasons, reason_count) : NULL;
	const char *own = number == AUTH_REQUIRED ? CLIENT_LOGIN_NEEDED : CLIENT_AGENT_ERROR;
	error_set_reason(err, ERROR_PROTOCOL, reason ? reason : own, "%s",
		message ? message : "an error without a message");
	if (is_ours) {
		text_append(err->text, sizeof(err->text), " (%s, %s)", code, stage);
	} else {
		text_append(err->text, sizeof(err->text), " (%lld)", number);
	}
	if (detail) {
		text_append(err->text, sizeof(err->text), ": %s", detail);
	}
	free(message);
	free(code);
	free(stage);
	free(detail);
	json_doc_destroy(doc);
	return false;
}
