/* SPDX-License-Identifier: MIT */
#include "tests/unit/runner_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

enum {
	WAIT_MS = 60000,
	CHUNK = 65536,
	STREAM_MAX = 256 << 20,
};

static uint64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- messages from the runner ---- */

static void keep_text(char *out, size_t size, struct span text)
{
	snprintf(out, size, "%.*s", (int)text.len, text.len > 0 ? text.data : "");
}

static void on_hello(void *data, struct span text, bool is_same_version)
{
	struct test_runner *runner = data;
	assert_true(is_same_version);
	keep_text(runner->hello, sizeof(runner->hello), text);
}

static void take_numbers(struct runner_event *event, const struct runner_message *message)
{
	switch (message->kind) {
	case RUNNER_STARTED:
		event->number = message->pid;
		break;
	case RUNNER_EXITED:
		event->number = message->exit.code;
		event->signal = message->exit.signal;
		break;
	case RUNNER_DONE:
		event->number = message->size;
		break;
	case RUNNER_FAILED:
	case RUNNER_FROZEN:
		event->number = message->failure.code;
		keep_text(event->reason, sizeof(event->reason), message->failure.reason);
		keep_text(event->text, sizeof(event->text), message->failure.text);
		break;
	case RUNNER_PATH:
		keep_text(event->text, sizeof(event->text), message->file.path);
		break;
	case RUNNER_STATUS_OF:
		event->status = message->status_of;
		break;
	default:
		break;
	}
}

static void on_message(void *data, const struct runner_message *message)
{
	struct test_runner *runner = data;
	assert_true(runner->event_count < RUNNER_EVENTS_MAX);
	struct runner_event *event = &runner->events[runner->event_count++];
	*event = (struct runner_event){.kind = message->kind, .id = message->id};
	take_numbers(event, message);
}

static void on_end(void *data, struct span text)
{
	struct test_runner *runner = data;
	keep_text(runner->end, sizeof(runner->end), text);
}

static void on_status(void *data, struct span text)
{
	struct test_runner *runner = data;
	keep_text(runner->status, sizeof(runner->status), text);
}

static const struct mux_listener listener = {on_hello, on_message, on_end, on_status};

/* ---- life ---- */

/* Starts the program with these words, over a new channel. */
static void start_program(
	struct test_runner *runner, const char *folder, const char *word, const char *name)
{
	int to[2];
	int from[2];
	struct error err;
	assert_true(fd_pipe(to, &err) && fd_pipe(from, &err));
	runner->pid = fork();
	assert_true(runner->pid >= 0);
	if (runner->pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		if (chdir(folder) == 0) {
			execl(RUNNER_PROGRAM, RUNNER_PROGRAM, word, name, NULL);
		}
		_exit(99);
	}
	close(to[0]);
	close(from[1]);
	runner->out = to[1];
	runner->in = from[0];
	assert_true(fd_set_nonblock(runner->out, true, &err));
}

static void start_with(struct test_runner *runner, const char *hello, const char *folder,
	const char *word, const char *name)
{
	struct error err;
	*runner = (struct test_runner){.in = -1, .out = -1};
	start_program(runner, folder, word, name);
	assert_true(fd_set_nonblock(runner->in, true, &err));
	runner->mux = mux_create(MUX_BROKER, &listener, runner, now_us());
	mux_hello(runner->mux, span_of(hello));
}

void test_runner_start_apart(
	struct test_runner *runner, const char *hello, const char *folder, const char *name)
{
	start_with(runner, hello, folder, "apart", name);
}

void test_runner_start_run(struct test_runner *runner, const char *hello, const char *folder)
{
	start_with(runner, hello, ".", "run", folder);
}

void test_runner_start(struct test_runner *runner, const char *hello)
{
	start_with(runner, hello, ".", NULL, NULL);
}

/* Reads the line with the nonce; false at the end of the channel. */
static bool read_nonce(struct test_runner *runner, char line[RUNNER_TEXT_MAX])
{
	size_t len = 0;
	while (len < RUNNER_TEXT_MAX - 1 && read(runner->in, line + len, 1) == 1 &&
		line[len] != '\n') {
		len++;
	}
	line[len] = '\0';
	return strncmp(line, "attach ", 7) == 0;
}

static bool answer(struct test_runner *runner, const char *folder, const char *name,
	const char key[RUNNER_KEY_SIZE], uint64_t number)
{
	char line[RUNNER_TEXT_MAX];
	struct error err;
	struct buf out;
	start_program(runner, folder, "attach", name);
	if (!read_nonce(runner, line)) {
		return false;
	}
	buf_init(&out, RUNNER_TEXT_MAX);
	assert_true(runner_attach_answer(&out, key, span_of(line + 7), number, &err));
	assert_true(fd_write_all(runner->out, buf_span(&out), NULL));
	buf_finish(&out);
	struct pollfd answered = {.fd = runner->in, .events = POLLIN};
	assert_int_equal(poll(&answered, 1, WAIT_MS), 1);
	return (answered.revents & POLLIN) != 0; // or the end
}

void test_runner_ask(struct test_runner *runner, const char *folder, const char *name,
	char out_line[RUNNER_TEXT_MAX])
{
	fd_close(&runner->in);
	fd_close(&runner->out);
	start_program(runner, folder, "attach", name);
	(void)read_nonce(runner, out_line);
	fd_close(&runner->in);
	fd_close(&runner->out);
	(void)test_runner_wait(runner);
}

bool test_runner_attach(struct test_runner *runner, const char *folder, const char *name,
	const char key[RUNNER_KEY_SIZE], uint64_t number)
{
	struct error err;
	fd_close(&runner->in);
	fd_close(&runner->out);
	if (!answer(runner, folder, name, key, number)) {
		fd_close(&runner->in);
		fd_close(&runner->out);
		(void)test_runner_wait(runner);
		return false;
	}
	assert_true(fd_set_nonblock(runner->in, true, &err));
	mux_restart(runner->mux, now_us());
	mux_hello(runner->mux, SPAN_LITERAL(""));
	return true;
}

void test_runner_cut(struct test_runner *runner)
{
	fd_close(&runner->in);
	fd_close(&runner->out);
	assert_int_equal(test_runner_wait(runner), 0);
}

void test_runner_close(struct test_runner *runner)
{
	fd_close(&runner->in);
	fd_close(&runner->out);
	mux_destroy(runner->mux);
	runner->mux = NULL;
}

int test_runner_wait(struct test_runner *runner)
{
	int status = -1;
	assert_int_equal(waitpid(runner->pid, &status, 0), runner->pid);
	runner->pid = 0;
	return status;
}

void test_runner_stop(struct test_runner *runner)
{
	test_runner_close(runner);
	assert_int_equal(test_runner_wait(runner), 0);
}

/* ---- turns ---- */

static void write_output(struct test_runner *runner)
{
	struct span bytes;
	while (runner->out >= 0 && !runner->is_mute &&
		(bytes = mux_output(runner->mux, now_us())).len > 0) {
		ssize_t count = write(runner->out, bytes.data, bytes.len);
		if (count < 0 && errno == EPIPE) {
			fd_close(&runner->out);
		}
		if (count < 0) {
			return;
		}
		mux_sent(runner->mux, (size_t)count);
	}
}

static void read_input(struct test_runner *runner)
{
	static char bytes[CHUNK];
	struct error err = {0};
	ssize_t count = read(runner->in, bytes, sizeof(bytes));
	if (count == 0) {
		runner->is_over = true;
	} else if (count > 0 &&
		   !mux_receive(runner->mux, (struct span){bytes, (size_t)count}, now_us(), &err)) {
		fail_msg("%s", err.text);
	}
}

void test_runner_pump(struct test_runner *runner)
{
	struct pollfd input = {.fd = runner->in, .events = POLLIN};
	write_output(runner);
	while (!runner->is_over && poll(&input, 1, 0) > 0) {
		read_input(runner);
		write_output(runner);
	}
}

void test_runner_turn(struct test_runner *runner)
{
	write_output(runner);
	assert_false(runner->is_over);
	bool has_output =
		runner->out >= 0 && !runner->is_mute && mux_output(runner->mux, now_us()).len > 0;
	struct pollfd polls[] = {{.fd = runner->in, .events = POLLIN},
		{.fd = has_output ? runner->out : -1, .events = POLLOUT}};
	assert_true(poll(polls, 2, WAIT_MS) > 0);
	if (polls[0].revents) {
		read_input(runner);
	}
}

static const struct runner_event *find_event(
	const struct test_runner *runner, enum runner_kind kind, uint64_t id)
{
	for (size_t i = 0; i < runner->event_count; i++) {
		const struct runner_event *event = &runner->events[i];
		if (event->id == id && (kind == 0 || event->kind == kind)) {
			return event;
		}
	}
	return NULL;
}

bool test_runner_has(const struct test_runner *runner, enum runner_kind kind, uint64_t id)
{
	return find_event(runner, kind, id) != NULL;
}

const struct runner_event *test_runner_await(
	struct test_runner *runner, enum runner_kind kind, uint64_t id)
{
	const struct runner_event *found;
	while ((found = find_event(runner, kind, id)) == NULL) {
		const struct runner_event *failure = find_event(runner, RUNNER_FAILED, id);
		if (failure) {
			fail_msg("%s", failure->text);
		}
		test_runner_turn(runner);
	}
	return found;
}

void test_runner_send(struct test_runner *runner, const struct runner_message *message)
{
	struct error err;
	assert_true(mux_send(runner->mux, message, &err));
}

/* ---- processes of this machine ---- */

bool test_runner_is_there(pid_t pid)
{
	char path[64];
	char line[512] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	bool is_read = file && fgets(line, sizeof(line), file);
	if (file) {
		fclose(file);
	}
	const char *end = is_read ? strrchr(line, ')') : NULL;
	return end && end[2] != 'Z' && end[2] != 'X';
}

void test_runner_await_gone(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = {.fd = fd, .events = POLLIN};
	assert_true(fd >= 0 || errno == ESRCH);
	assert_true(fd < 0 || poll(&ended, 1, WAIT_MS) == 1);
	fd_close(&fd);
	assert_false(test_runner_is_there(pid));
}

/* ---- streams ---- */

static void move_out(struct test_stream *stream)
{
	size_t count = mux_stream_write(stream->stream, buf_span(&stream->bytes));
	buf_consume(&stream->bytes, count);
	if (stream->finishes && stream->bytes.len == 0) {
		mux_stream_finish(stream->stream);
		stream->stream = NULL;
	}
}

static void on_readable(void *data)
{
	struct test_stream *stream = data;
	struct error err;
	if (stream->is_paused) {
		return;
	}
	struct span bytes = mux_stream_peek(stream->stream);
	assert_true(bytes.len == 0 || buf_append(&stream->bytes, bytes, &err));
	mux_stream_consume(stream->stream, bytes.len);
	stream->is_over = mux_stream_is_over(stream->stream);
	if (stream->is_over) {
		mux_stream_close(stream->stream);
		stream->stream = NULL;
	}
}

static void on_writable(void *data)
{
	move_out(data);
}

static void on_reset(void *data)
{
	struct test_stream *stream = data;
	stream->is_reset = true;
	mux_stream_close(stream->stream);
	stream->stream = NULL;
}

static const struct mux_stream_listener stream_listener = {on_readable, on_writable, on_reset};

struct runner_stream test_stream_open(struct test_runner *runner, struct test_stream *stream,
	enum mux_direction direction, enum mux_class class, uint64_t window)
{
	struct error err;
	const struct runner_stream named = {mux_next_stream(runner->mux), window};
	*stream = (struct test_stream){0};
	buf_init(&stream->bytes, STREAM_MAX);
	stream->stream =
		mux_open(runner->mux, &named, direction, class, &stream_listener, stream, &err);
	assert_non_null(stream->stream);
	return named;
}

void test_stream_put(struct test_stream *stream, struct span bytes, bool finishes)
{
	struct error err;
	assert_true(bytes.len == 0 || buf_append(&stream->bytes, bytes, &err));
	stream->finishes = finishes;
	move_out(stream);
}

void test_stream_await_end(struct test_runner *runner, struct test_stream *stream)
{
	while (!stream->is_over && !stream->is_reset) {
		test_runner_turn(runner);
	}
}

void test_stream_finish(struct test_stream *stream)
{
	mux_stream_close(stream->stream);
	stream->stream = NULL;
	buf_finish(&stream->bytes);
}

/* ---- processes ---- */

void test_exec_start(struct test_runner *runner, struct test_exec *exec, const char *const *argv,
	const char *const *env, const char *cwd)
{
	exec->id = ++runner->last_id;
	struct runner_message message = {.kind = RUNNER_EXEC,
		.id = exec->id,
		.exec = {.argv = {.list = argv},
			.env = {.list = env},
			.cwd = span_of(cwd),
			.is_grouped = 1}};
	message.exec.in = test_stream_open(runner, &exec->in, MUX_OUT, MUX_AGENT, MUX_WINDOW_INPUT);
	message.exec.out =
		test_stream_open(runner, &exec->out, MUX_IN, MUX_AGENT, MUX_WINDOW_TERMINAL);
	message.exec.err =
		test_stream_open(runner, &exec->err, MUX_IN, MUX_AGENT, MUX_WINDOW_TERMINAL);
	test_runner_send(runner, &message);
}

void test_exec_shell(struct test_runner *runner, struct test_exec *exec, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	test_exec_start(runner, exec, argv, env, "/");
}

void test_exec_finish(struct test_exec *exec)
{
	test_stream_finish(&exec->in);
	test_stream_finish(&exec->out);
	test_stream_finish(&exec->err);
}

const struct runner_event *test_exec_await(struct test_runner *runner, struct test_exec *exec)
{
	test_stream_await_end(runner, &exec->out);
	test_stream_await_end(runner, &exec->err);
	test_runner_await(runner, RUNNER_EMPTIED, exec->id);
	return test_runner_await(runner, RUNNER_EXITED, exec->id);
}
