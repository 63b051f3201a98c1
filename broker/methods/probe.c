/* SPDX-License-Identifier: MIT */
#include "broker/methods/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"

/* df -P (POSIX) prints one line per file system, with numbers in columns 2 and 4. */
static const char script[] = "LC_ALL=C df -Pk -- \"$1\" 2>/dev/null | tail -n 1\n"
			     "echo ready\n"
			     "exec cat\n";

static const char ready_word[] = "ready";
static const char echo_word[] = "ping\n";

enum { OUTPUT_MAX = 16 * 1024 };

struct probe {
	struct probe_config config;
	char *folder;      // owned
	struct exec *exec; // owned
	int in;
	ev_io reader;
	ev_timer due;    // the deadline; or, once is_over, the call of done
	struct buf text; // output without a complete line yet
	long long asked_us;
	bool is_echoing; // the word to echo was sent
	bool is_over;
	struct probe_result result;
};

static long long now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* ---- the end ---- */

static void end(struct probe *probe)
{
	io_close(probe->config.loop, &probe->reader);
	fd_close(&probe->in);
	probe->is_over = true;
	ev_timer_stop(probe->config.loop, &probe->due);
	ev_timer_set(&probe->due, 0., 0.);
	ev_timer_start(probe->config.loop, &probe->due);
}

static void fail(struct probe *probe, const struct error *err)
{
	if (!probe->is_over) {
		probe->result.err = *err;
		end(probe);
	}
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct probe *probe = CONTAINER_OF(timer, struct probe, due);
	struct error err;
	if (probe->is_over) {
		probe->config.done(probe->config.data);
		return;
	}
	/* This deadline does not stand still: whoever asks wants to know that nothing answers. */
	if (sandbox_is_away(probe->config.sandbox)) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST",
			"the connection to the sandbox is lost, the broker is connecting again; "
			"nothing came within %d ms (%s)",
			probe->config.timeout_ms, probe->config.timeout_key);
	} else {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"the sandbox has not answered within %d ms (%s)", probe->config.timeout_ms,
			probe->config.timeout_key);
	}
	fail(probe, &err);
}

/* ---- the output ---- */

/* Columns 2 to 4, in KiB. */
static void note_disk(struct probe *probe, const char *line)
{
	unsigned long long columns[3];
	char *end = (char *)line + strcspn(line, " ");
	for (size_t i = 0; i < ARRAY_LENGTH(columns); i++) {
		const char *start = end + strspn(end, " ");
		columns[i] = strtoull(start, &end, 10);
		if (end == start) {
			return;
		}
	}
	probe->result.has_disk = true;
	probe->result.disk_size_bytes = columns[0] * 1024;
	probe->result.disk_free_bytes = columns[2] * 1024;
}

static void send_echo(struct probe *probe)
{
	struct error err;
	long long now = now_us();
	probe->result.start_us = now - probe->asked_us;
	probe->asked_us = now;
	probe->is_echoing = true;
	if (write(probe->in, echo_word, sizeof(echo_word) - 1) != sizeof(echo_word) - 1) {
		error_set_errno(&err, errno, "writing to a process in the sandbox");
		fail(probe, &err);
	}
}

static void on_line(struct probe *probe, const char *line)
{
	if (!probe->is_echoing && strcmp(line, ready_word) == 0) {
		send_echo(probe);
	} else if (!probe->is_echoing) {
		note_disk(probe, line);
	} else if (strncmp(line, echo_word, sizeof(echo_word) - 2) == 0) {
		probe->result.round_trip_us = now_us() - probe->asked_us;
		probe->result.has_answered = true;
		end(probe);
	}
}

static void take_lines(struct probe *probe)
{
	struct span text = buf_span(&probe->text);
	const char *newline;
	while (!probe->is_over && (newline = memchr(text.data, '\n', text.len))) {
		size_t len = (size_t)(newline - text.data);
		char line[1024];
		text_whole(line, sizeof(line), "%.*s", (int)len, text.data);
		text = (struct span){newline + 1, text.len - len - 1};
		on_line(probe, line);
	}
	buf_consume(&probe->text, probe->text.len - text.len);
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct probe *probe = CONTAINER_OF(io, struct probe, reader);
	struct error err;
	char *room = buf_reserve(&probe->text, 1024, &err);
	if (!room) {
		fail(probe, &err);
		return;
	}
	ssize_t got = read(io->fd, room, 1024);
	if (got > 0) {
		buf_commit(&probe->text, (size_t)got);
		take_lines(probe);
		return;
	}
	if (got < 0 && io_is_transient(errno)) {
		return;
	}
	io_close(loop, io); // its exit is reported next
}

/* ---- the process ---- */

/* It has exited without an answer: its stdin is still open. */
static void on_exited(void *data, struct process_status status)
{
	struct error err;
	char how[64];
	error_set(&err, ERROR_UNAVAILABLE, "a shell in the sandbox %s before it had answered",
		process_status_text(status, how, sizeof(how)));
	fail(data, &err);
}

static void on_failed(void *data, const struct error *err)
{
	fail(data, err);
}

static const struct exec_listener exec_listener = {
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_lost = on_failed,
};

static void start(struct probe *probe)
{
	struct error err;
	const char *argv[] = {"sh", "-c", script, "sh", probe->folder, NULL};
	struct exec_spec spec = {.argv = argv, .want_stdin = true, .merge_stderr = true};
	probe->asked_us = now_us();
	probe->exec = sandbox_exec(probe->config.sandbox, &spec, &exec_listener, probe, &err);
	if (!probe->exec) {
		fail(probe, &err);
		return;
	}
	probe->in = exec_take_stdin(probe->exec);
	ev_io_set(&probe->reader, exec_take_stdout(probe->exec), EV_READ);
	ev_io_start(probe->config.loop, &probe->reader);
}

struct probe *probe_start(const struct probe_config *config)
{
	struct probe *probe = mem_alloc_zero(sizeof(*probe));
	probe->config = *config;
	probe->folder = mem_strdup(config->folder);
	probe->in = -1;
	buf_init(&probe->text, OUTPUT_MAX);
	ev_init(&probe->reader, on_readable);
	probe->reader.fd = -1;
	ev_timer_init(&probe->due, on_due, config->timeout_ms / 1000., 0.);
	ev_timer_start(config->loop, &probe->due);
	start(probe);
	return probe;
}

const struct probe_result *probe_result(const struct probe *probe)
{
	return &probe->result;
}

void probe_destroy(struct probe *probe)
{
	if (!probe) {
		return;
	}
	ev_timer_stop(probe->config.loop, &probe->due);
	io_close(probe->config.loop, &probe->reader);
	fd_close(&probe->in);
	exec_destroy(probe->exec);
	buf_finish(&probe->text);
	free(probe->folder);
	free(probe);
}
