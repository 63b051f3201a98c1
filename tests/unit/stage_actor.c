/* SPDX-License-Identifier: MIT */
#include "tests/unit/stage.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/libc.h"
#include "base/words.h"

enum {
	DEADLINE_MS = 30000,  // for a test that waits for something
	LINE_BYTES = 1 << 26, // the longest that a test waits for
};

/* ---- lines ---- */

static char *take_line(struct buf *heard)
{
	struct span text = buf_span(heard);
	const char *end = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;
	if (!end) {
		return NULL;
	}
	size_t len = (size_t)(end - text.data);
	char *line = mem_strndup((struct span){text.data, len});
	buf_consume(heard, len + 1);
	return line;
}

/* Reads what is there; false at the end of file. */
static bool read_some(int fd, struct buf *heard)
{
	for (;;) {
		char *space = buf_reserve(heard, 65536, NULL);
		assert_non_null(space);
		ssize_t got = read(fd, space, 65536);
		if (got > 0) {
			buf_commit(heard, (size_t)got);
		} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
			return false;
		} else {
			return true;
		}
	}
}

char *stage_line(struct stage *stage, int fd, struct buf *heard)
{
	long long deadline = clock_now_ms() + DEADLINE_MS;
	for (;;) {
		char *line = take_line(heard);
		if (line) {
			return line;
		}
		bool is_open = read_some(fd, heard);
		line = take_line(heard);
		if (line || !is_open) {
			return line;
		}
		if (clock_now_ms() > deadline) {
			fail_msg("no line came");
		}
		stage_settle(stage);
		if (read_some(fd, heard) && heard->len == 0) {
			stage_wait_turn(stage);
		}
	}
}

/* ---- processes ---- */

static struct actor *from_exec(struct exec *exec)
{
	return CONTAINER_OF(exec, struct actor, exec);
}

static void tell(struct actor *actor, const char *what)
{
	size_t len = strlen(actor->told);
	snprintf(actor->told + len, sizeof(actor->told) - len, "%s ", what);
}

void actor_assert_told(struct actor *actor, const char *expected)
{
	assert_string_equal(actor->told, expected);
	actor->told[0] = '\0';
}

static void on_start(struct soon *soon)
{
	actor_start(CONTAINER_OF(soon, struct actor, start));
}

void actor_start(struct actor *actor)
{
	const struct error *err = &actor->stage->start_error;
	if (!actor->listener) {
		return;
	}
	if (err->code != ERROR_NONE) {
		actor->listener->on_failed(actor->data, err);
	} else {
		actor->has_started = true;
		exec_raise_started(actor->listener, actor->data);
	}
}

static void on_killed(struct soon *soon)
{
	struct actor *actor = CONTAINER_OF(soon, struct actor, killed);
	actor_dies(actor, 0, SIGKILL);
}

static void stage_signal_group(struct exec *exec, int signal)
{
	tell(from_exec(exec), libc_signal_name(signal));
}

static void stage_kill_tree(struct exec *exec)
{
	struct actor *actor = from_exec(exec);
	if (actor->was_killed) {
		return; // idempotent
	}
	actor->was_killed = true;
	tell(actor, "kill");
	if (!actor->stage->ignores_kill) {
		soon_start(&actor->killed);
	}
}

static void stage_resize(struct exec *exec, const struct terminal_size *size)
{
}

static void stage_exec_destroy(struct exec *exec)
{
	struct actor *actor = from_exec(exec);
	tell(actor, "destroyed");
	actor->listener = NULL;
	soon_stop(&actor->start);
	soon_stop(&actor->killed);
}

static const struct exec_impl exec_impl = {
	.signal_group = stage_signal_group,
	.kill_tree = stage_kill_tree,
	.resize = stage_resize,
	.destroy = stage_exec_destroy,
};

static char **copy_words(const char *const *words)
{
	size_t count = 0;
	while (words[count]) {
		count++;
	}
	char **copy = mem_alloc_zero((count + 1) * sizeof(*copy));
	for (size_t i = 0; i < count; i++) {
		copy[i] = mem_strdup(words[i]);
	}
	return copy;
}

/* A pipe whose ends do not block. */
static void make_pipe(int *out_read, int *out_write)
{
	struct error err;
	int fds[2];
	assert_true(fd_pipe(fds, &err));
	assert_true(fd_set_nonblock(fds[0], true, &err) && fd_set_nonblock(fds[1], true, &err));
	*out_read = fds[0];
	*out_write = fds[1];
}

struct exec *stage_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	struct stage *stage = stage_of(sandbox);
	if (stage->exec_error.code != ERROR_NONE) {
		*err = stage->exec_error;
		return NULL;
	}
	assert_true(stage->actor_count < STAGE_ACTORS_MAX);
	struct actor *actor = mem_alloc_zero(sizeof(*actor));
	stage->actors[stage->actor_count++] = actor;
	*actor = (struct actor){
		.exec = {.impl = &exec_impl, .fds = {-1, -1, -1}},
		.stage = stage,
		.listener = listener,
		.data = data,
		.in = -1,
		.out = -1,
		.err = -1,
		.argv = copy_words(spec->argv),
		.env = copy_words(spec->env),
		.was_foreground = spec->foreground,
	};
	buf_init(&actor->heard, LINE_BYTES);
	if (!spec->foreground) {
		make_pipe(&actor->in, &actor->exec.fds[0]);
		make_pipe(&actor->exec.fds[1], &actor->out);
		make_pipe(&actor->exec.fds[2], &actor->err);
	}
	soon_init(&actor->start, stage->loop, on_start);
	soon_init(&actor->killed, actor->stage->loop, on_killed);
	if (!stage->holds_start) {
		soon_start(&actor->start);
	}
	return &actor->exec;
}

void actor_writes(struct actor *actor, struct span bytes)
{
	long long deadline = clock_now_ms() + DEADLINE_MS;
	while (bytes.len > 0) {
		ssize_t wrote = write(actor->out, bytes.data, bytes.len);
		if (wrote > 0) {
			bytes = (struct span){bytes.data + wrote, bytes.len - (size_t)wrote};
			continue;
		}
		assert_int_equal(errno, EAGAIN);
		assert_true(clock_now_ms() < deadline);
		stage_settle(actor->stage);
	}
}

void actor_closes(struct actor *actor, int *fd)
{
	fd_close(fd);
	stage_settle(actor->stage);
}

static void raise_exited(struct actor *actor, int code, int signal)
{
	if (actor->listener && !actor->has_exited) {
		actor->has_exited = true;
		actor->listener->on_exited(
			actor->data, (struct process_status){.code = code, .signal = signal});
	}
}

void actor_exits_holding(struct actor *actor, int code, int signal)
{
	fd_close(&actor->in);
	raise_exited(actor, code, signal);
	stage_settle(actor->stage);
}

void actor_exits(struct actor *actor, int code, int signal)
{
	fd_close(&actor->out);
	fd_close(&actor->err);
	actor_exits_holding(actor, code, signal);
}

void actor_empties(struct actor *actor)
{
	fd_close(&actor->in);
	fd_close(&actor->out);
	fd_close(&actor->err);
	if (actor->listener && !actor->has_emptied) {
		actor->has_emptied = true;
		exec_raise_emptied(actor->listener, actor->data);
	}
}

/* Raised as a provider does, from the loop: nothing is settled between. */
void actor_dies(struct actor *actor, int code, int signal)
{
	fd_close(&actor->in);
	fd_close(&actor->out);
	fd_close(&actor->err);
	raise_exited(actor, code, signal);
	actor_empties(actor);
}

void actor_is_lost(struct actor *actor, const char *text)
{
	struct error err;
	error_set(&err, ERROR_UNAVAILABLE, "%s", text);
	actor->listener->on_lost(actor->data, &err);
}

bool actor_reads(struct actor *actor)
{
	stage_settle(actor->stage);
	if (actor->in != -1 && !read_some(actor->in, &actor->heard)) {
		fd_close(&actor->in);
	}
	return actor->in != -1;
}

char *actor_line(struct actor *actor)
{
	return stage_line(actor->stage, actor->in, &actor->heard);
}

static void actor_free(struct actor *actor)
{
	assert_null(actor->listener); // the broker has let go of it
	fd_close(&actor->in);
	fd_close(&actor->out);
	fd_close(&actor->err);
	buf_finish(&actor->heard);
	words_free(actor->argv);
	words_free(actor->env);
	free(actor);
}

void actors_free(struct stage *stage)
{
	for (int i = 0; i < stage->actor_count; i++) {
		actor_free(stage->actors[i]);
	}
}
