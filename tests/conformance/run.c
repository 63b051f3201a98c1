/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/conformance/world.h"

/* ---- sinks ---- */

static const unsigned long long fnv_start = 0xcbf29ce484222325ULL;
static const unsigned long long fnv_prime = 0x100000001b3ULL;

static void sink_take(struct sink *sink, const char *data, size_t len)
{
	struct error err;
	size_t space = sink->text.max - sink->text.len;
	assert_true(buf_append(&sink->text, (struct span){data, len < space ? len : space}, &err));
	for (size_t i = 0; i < len; i++) {
		sink->hash = (sink->hash ^ (unsigned char)data[i]) * fnv_prime;
	}
	sink->total += len;
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct sink *sink = CONTAINER_OF(io, struct sink, io);
	char bytes[65536];
	ssize_t count = read(sink->fd, bytes, sizeof(bytes));
	if (count > 0) {
		sink_take(sink, bytes, (size_t)count);
	} else if (count == 0) {
		sink->at_end = true;
		ev_io_stop(loop, io);
		fd_close(&sink->fd);
	} else {
		assert_true(errno == EAGAIN || errno == EINTR);
	}
}

void sink_open(struct sink *sink, struct ev_loop *loop, int fd)
{
	*sink = (struct sink){.loop = loop, .fd = fd, .hash = fnv_start};
	buf_init(&sink->text, SINK_TEXT_MAX);
	if (fd < 0) {
		sink->at_end = true;
		return;
	}
	ev_io_init(&sink->io, on_readable, fd, EV_READ);
	ev_io_start(loop, &sink->io);
}

void sink_close(struct sink *sink)
{
	if (sink->fd >= 0 && sink->loop) {
		ev_io_stop(sink->loop, &sink->io);
		fd_close(&sink->fd);
	}
	buf_finish(&sink->text);
}

const char *sink_text(struct sink *sink)
{
	static char text[SINK_TEXT_MAX + 1];
	struct span bytes = buf_span(&sink->text);
	if (bytes.len > 0) {
		memcpy(text, bytes.data, bytes.len);
	}
	text[bytes.len] = '\0';
	return text;
}

/* ---- events ---- */

static void tell(struct run *run, char event)
{
	size_t len = strlen(run->told);
	assert_true(len + 1 < TOLD_MAX);
	run->told[len] = event;
	if (event == run->destroy_at) {
		exec_destroy(run->exec);
		run->exec = NULL;
	}
}

static void on_started(void *data)
{
	struct run *run = data;
	tell(run, 's');
	run->has_started = true;
}

static void on_failed(void *data, const struct error *err)
{
	struct run *run = data;
	tell(run, 'f');
	run->has_failed = true;
	run->err = *err;
}

static void on_exited(void *data, struct process_status status)
{
	struct run *run = data;
	tell(run, 'x');
	run->has_exited = true;
	run->status = status;
}

static void on_emptied(void *data)
{
	struct run *run = data;
	tell(run, 'e');
	run->has_emptied = true;
}

static void on_lost(void *data, const struct error *err)
{
	tell(data, 'l');
}

static const struct exec_listener listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_lost,
};

/* ---- runs ---- */

void run_start_unread(struct run *run, const struct world *world, const struct exec_spec *spec)
{
	*run = (struct run){.world = world, .in = -1};
	run->out.fd = -1;
	run->errors.fd = -1;
	struct error err;
	run->exec = sandbox_exec(world->sandbox, spec, &listener, run, &err);
	if (!run->exec) {
		fail_msg("%s", err.text);
	}
	assert_string_equal(run->told, ""); // no event comes from inside the call
	run->in = exec_take_stdin(run->exec);
	assert_true((run->in >= 0) == spec->want_stdin);
}

void run_read(struct run *run)
{
	sink_open(&run->out, run->world->loop, exec_take_stdout(run->exec));
	sink_open(&run->errors, run->world->loop, exec_take_stderr(run->exec));
}

void run_start(struct run *run, const struct world *world, const struct exec_spec *spec)
{
	run_start_unread(run, world, spec);
	run_read(run);
}

void run_start_shell(struct run *run, const struct world *world, const char *script)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	run_start(run, world, &(struct exec_spec){.argv = argv, .cwd = world->root});
}

void run_expect(const struct run *run, const char *told)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (strcmp(run->told, told) != 0 && strlen(run->told) <= strlen(told) &&
		clock_now_ms() < deadline_ms) {
		world_run_for(run->world, 2);
	}
	if (run->has_failed && told[0] != 'f') {
		fail_msg("%s", run->err.text);
	}
	assert_string_equal(run->told, told);
}

void run_destroy(struct run *run)
{
	exec_destroy(run->exec);
	run->exec = NULL;
	fd_close(&run->in);
	sink_close(&run->out);
	sink_close(&run->errors);
}

void run_swapper(struct run *run, const struct world *world, const char *target)
{
	/* A folder that another write has made may be in the way. */
	static const char script[] =
		"ln -sfn \"$1\" link || exit; "
		"if command -v python3 >/dev/null; then exec python3 -c 'import os, shutil\n"
		"def move(old, new):\n"
		"  try: os.rename(old, new)\n"
		"  except OSError: shutil.rmtree(\"swap\", ignore_errors=True)\n"
		"print(\"go\", flush=True)\n"
		"while True:\n"
		"  move(\"real\", \"swap\"); move(\"swap\", \"real\")\n"
		"  move(\"link\", \"swap\"); move(\"swap\", \"link\")\n'; fi; echo go; "
		"while :; do mv -T real swap; mv -T swap real; mv -T link swap; mv -T swap link; "
		"done";
	const char *argv[] = {"sh", "-c", script, "sh", target, NULL};
	run_start(run, world, &(struct exec_spec){.argv = argv, .cwd = world->root});
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (run->out.total == 0 && clock_now_ms() < deadline_ms) {
		world_run_for(world, 5);
	}
	assert_true(run->out.total > 0);
}

static void fill_script(char *script, size_t size, const char *format, va_list args)
	ATTR_PRINTF(3, 0);
static void fill_script(char *script, size_t size, const char *format, va_list args)
{
	int len = vsnprintf(script, size, format, args);
	assert_in_range(len, 0, size - 1);
}

const char *world_shell(const struct world *world, const char *format, ...)
{
	static char text[SINK_TEXT_MAX + 1];
	char script[8192];
	va_list args;
	va_start(args, format);
	fill_script(script, sizeof(script), format, args);
	va_end(args);
	struct run run;
	run_start_shell(&run, world, script);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	world_run_until(world, &run.errors.at_end);
	if (run.status.code != 0 || run.status.signal != 0) {
		fail_msg("%s: status %d, %s", script, run.status.code, sink_text(&run.errors));
	}
	snprintf(text, sizeof(text), "%s", sink_text(&run.out));
	size_t text_len = strlen(text);
	if (text_len > 0 && text[text_len - 1] == '\n') {
		text[text_len - 1] = '\0';
	}
	run_destroy(&run);
	return text;
}

bool world_is_alive(const struct world *world, long pid)
{
	/* If no other subreaper is between it and this test, we have to reap it. */
	waitpid((pid_t)pid, NULL, WNOHANG);
	return strcmp(world_shell(world, "kill -0 %ld 2>/dev/null && echo yes || echo no", pid),
		       "yes") == 0;
}

void world_expect_gone(const struct world *world, long pid)
{
	for (int i = 0; i < 200 && world_is_alive(world, pid); i++) {
		world_run_for(world, 10);
	}
	assert_false(world_is_alive(world, pid));
}
