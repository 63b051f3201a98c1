/* SPDX-License-Identifier: MIT */
#include "sync/rsync/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/rsync/call_impl.h"

/*
 * rsync normally notices by itself (--timeout) and says more; this is for an rsync that does not.
 */
enum { PATIENCE_MS = 10000 };

/* ---- the end ---- */

static const char *end_text(struct buf *text)
{
	if (!buf_append(text, (struct span){"", 1}, NULL)) {
		text->data[text->head + text->len - 1] = '\0';
	}
	return buf_span(text).data;
}

/* Keeps as much as fits. */
static void keep(struct buf *text, const char *chunk, ssize_t count)
{
	size_t room = CALL_OUTPUT_MAX - text->len;
	size_t taken = (size_t)count < room ? (size_t)count : room;
	(void)!buf_append(text, (struct span){chunk, taken}, NULL);
}

static void on_finish(struct soon *soon)
{
	struct call *call = CONTAINER_OF(soon, struct call, finish);
	struct error err = call->err;
	if (err.code != ERROR_NONE) {
		call->done(call->data, NULL, &err);
		return;
	}
	call->result.output = end_text(&call->printed);
	call->result.said = end_text(&call->said);
	call->result.far_words = call->far_tail;
	call->result.words = call->tail[0] ? call->tail : call->far_tail;
	call->done(call->data, &call->result, NULL);
}

static void end_when_over(struct call *call)
{
	bool is_over = call->has_exited && call->output.fd < 0 && call->words.fd < 0;
	if (is_over || call->err.code != ERROR_NONE) {
		ev_timer_stop(call->loop, &call->silence);
		soon_start(&call->finish);
	}
}

void call_fail(struct call *call, const struct error *err)
{
	if (call->err.code == ERROR_NONE) {
		call->err = *err;
	}
	end_when_over(call);
}

static void on_silence(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct call *call = CONTAINER_OF(timer, struct call, silence);
	struct error err;
	if (sandbox_extend_timer(call->sandbox, timer, &call->away_ms)) {
		return;
	}
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
		"syncing: rsync has made no progress for %.0f ms", timer->repeat * 1000.);
	call_fail(call, &err);
}

/* ---- its output ---- */

static ssize_t read_chunk(struct call *call, ev_io *io, char *chunk, size_t size)
{
	ssize_t count = read(io->fd, chunk, size);
	if (count < 0 && io_is_transient(errno)) {
		return -1;
	}
	if (count <= 0) {
		io_close(call->loop, io);
		return 0;
	}
	ev_timer_again(call->loop, &call->silence);
	return count;
}

static void on_output(struct ev_loop *loop, ev_io *io, int events)
{
	struct call *call = CONTAINER_OF(io, struct call, output);
	char chunk[4096];
	ssize_t count = read_chunk(call, io, chunk, sizeof(chunk));
	if (count > 0) {
		keep(&call->printed, chunk, count);
	} else if (count == 0) {
		end_when_over(call);
	}
}

static void on_words(struct ev_loop *loop, ev_io *io, int events)
{
	struct call *call = CONTAINER_OF(io, struct call, words);
	char chunk[4096];
	ssize_t count = read_chunk(call, io, chunk, sizeof(chunk));
	if (count > 0) {
		keep(&call->said, chunk, count);
		io_keep_words(call->tail, CALL_WORDS_MAX, (struct span){chunk, (size_t)count});
	} else if (count == 0) {
		end_when_over(call);
	}
}

static void on_far_words(struct ev_loop *loop, ev_io *io, int events)
{
	struct call *call = CONTAINER_OF(io, struct call, far_words);
	char chunk[4096];
	ssize_t count = read_chunk(call, io, chunk, sizeof(chunk));
	if (count > 0) {
		io_keep_words(call->far_tail, CALL_WORDS_MAX, (struct span){chunk, (size_t)count});
	}
}

/* ---- the local half ---- */

static void process_started(void *data, pid_t pid)
{
}

static void process_failed(void *data, const struct error *err)
{
	struct error copy = *err;
	if (err->code == ERROR_NOT_FOUND && !err->reason) { // or the mirror's folder is gone
		error_set_reason(&copy, ERROR_UNAVAILABLE, "SYNC_TOOL_MISSING",
			"this machine has no rsync, which is needed here and in the sandbox (%s)",
			err->text);
	}
	call_fail(data, &copy);
}

static void process_exited(void *data, struct process_status status)
{
	struct call *call = data;
	call->result.status = status.signal ? 128 + status.signal : status.code;
	call->has_exited = true;
	end_when_over(call);
}

static void process_emptied(void *data)
{
}

static const struct process_listener process_listener = {
	.on_started = process_started,
	.on_failed = process_failed,
	.on_exited = process_exited,
	.on_emptied = process_emptied,
};

static bool start_process(struct call *call, const struct call_request *request, struct error *err)
{
	char token[sizeof(RSYNC_SHELL_TOKEN) + RSYNC_SHELL_TOKEN_LENGTH + 2];
	const char *folders =
		request->tools->path ? request->tools->path : "/usr/local/bin:/usr/bin:/bin";
	size_t size = strlen(folders) + sizeof("PATH=");
	char *path = mem_alloc(size);
	const char *const env[] = {path, token, "LC_ALL=C", "HOME=/nonexistent", NULL};
	int output[2] = {-1, -1}, words[2] = {-1, -1};
	text_whole(path, size, "PATH=%s", folders);
	text_whole(token, sizeof(token), "%s=%s", RSYNC_SHELL_TOKEN, call->token);
	bool started = fd_pipe(output, err) && fd_pipe(words, err);
	ev_io_set(&call->output, output[0], EV_READ);
	ev_io_set(&call->words, words[0], EV_READ);
	if (started) {
		struct process_spec spec = {.argv = request->argv,
			.env = env,
			.cwd = request->folder,
			.in = -1,
			.out = output[1],
			.err = words[1]};
		started = fd_set_nonblock(output[0], true, err) &&
		          fd_set_nonblock(words[0], true, err);
		call->process = started ? process_start(request->tools->spawner, &spec,
						  &process_listener, call, err)
		                        : NULL;
	}
	free(path);
	fd_close(&output[1]);
	fd_close(&words[1]);
	return call->process != NULL;
}

static void init(struct call *call)
{
	call->folder = -1;
	buf_init(&call->printed, CALL_OUTPUT_MAX + 1);
	buf_init(&call->said, CALL_OUTPUT_MAX + 1);
	ev_io_init(&call->shell, call_on_shell, -1, EV_READ);
	ev_io_init(&call->output, on_output, -1, EV_READ);
	ev_io_init(&call->words, on_words, -1, EV_READ);
	ev_io_init(&call->far_words, on_far_words, -1, EV_READ);
	ev_io_init(&call->listener, NULL, -1, EV_READ);
	ev_init(&call->silence, on_silence);
	soon_init(&call->finish, call->loop, on_finish);
}

struct call *call_start(
	const struct call_request *request, call_done *done, void *data, struct error *err)
{
	struct call *call = mem_alloc_zero(sizeof(*call));
	call->loop = request->loop;
	call->sandbox = request->sandbox;
	call->received_max = request->received_max;
	words_append_all(&call->before, request->before);
	call->done = done;
	call->data = data;
	init(call);
	if (!call_listen(call, request->folder, err) || !start_process(call, request, err)) {
		call_destroy(call);
		return NULL;
	}
	ev_io_start(call->loop, &call->output);
	ev_io_start(call->loop, &call->words);
	call->away_ms = sandbox_away_ms(call->sandbox);
	call->silence.repeat = (double)(request->timeout_ms + PATIENCE_MS) / 1000.;
	ev_timer_again(call->loop, &call->silence);
	return call;
}

void call_destroy(struct call *call)
{
	if (!call) {
		return;
	}
	call_unlisten(call);
	ev_timer_stop(call->loop, &call->silence);
	soon_stop(&call->finish);
	io_close(call->loop, &call->shell);
	io_close(call->loop, &call->output);
	io_close(call->loop, &call->words);
	io_close(call->loop, &call->far_words);
	process_destroy(call->process);
	exec_destroy(call->exec);
	buf_finish(&call->printed);
	buf_finish(&call->said);
	words_free(call->before);
	free(call);
}
