/* SPDX-License-Identifier: MIT */
#include "tests/support/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/agent/turn.h"

enum { READ_SIZE = 64 * 1024 };

static const size_t buffer_max = (size_t)1 << 30;
static volatile sig_atomic_t read_again;

static void on_user_signal(int number)
{
	read_again = 1;
}

void agent_stop_on_signal(void)
{
	struct sigaction action = {.sa_handler = on_user_signal};
	sigaction(SIGUSR1, &action, NULL);
}

/* In a path, "%p" is the process's id. */
static int open_log(const char *path)
{
	if (path == NULL) {
		return -1;
	}
	const char *mark = strstr(path, "%p");
	char *name = NULL;
	int length = mark != NULL ? asprintf(&name, "%.*s%d%s", (int)(mark - path), path, getpid(),
					    mark + 2)
	                          : asprintf(&name, "%s", path);
	int fd = length < 0 ? -1 : open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0) {
		fprintf(stderr, "scripted-agent: cannot open %s: %s\n", path, strerror(errno));
		exit(2);
	}
	free(name);
	return fd;
}

void agent_init(struct agent *agent, const struct agent_options *options)
{
	*agent = (struct agent){.options = *options};
	buf_init(&agent->in, buffer_max);
	buf_init(&agent->out, buffer_max);
	list_init(&agent->sessions);
	list_init(&agent->turns);
	agent->journal = open_log(options->journal);
	agent->pids = open_log(options->pids);
	agent_note_pid(agent, getpid());
	fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
}

static void session_destroy(struct session *session)
{
	list_remove(&session->link);
	free(session->id);
	free(session->quoted_id);
	free(session->cwd);
	free(session->mode);
	free(session);
}

void agent_finish(struct agent *agent)
{
	turns_destroy(agent);
	LIST_FOR_EACH(session, &agent->sessions, struct session, link) {
		session_destroy(session);
	}
	buf_finish(&agent->in);
	buf_finish(&agent->out);
}

struct session *agent_find_session(struct agent *agent, const char *id)
{
	LIST_FOR_EACH(session, &agent->sessions, struct session, link) {
		if (id != NULL && strcmp(session->id, id) == 0) {
			return session;
		}
	}
	return NULL;
}

void agent_note_pid(struct agent *agent, int pid)
{
	if (agent->pids >= 0 && dprintf(agent->pids, "%d\n", pid) < 0) {
		perror("scripted-agent: pids");
	}
}

static void add_span(struct buf *text, struct span bytes)
{
	if (!buf_append(text, bytes, NULL)) {
		abort();
	}
}

static void add_list(struct buf *text, const char *format, va_list arguments) ATTR_PRINTF(2, 0);
static void add_list(struct buf *text, const char *format, va_list arguments)
{
	char *piece = NULL;
	int length = vasprintf(&piece, format, arguments);
	if (length < 0) {
		abort();
	}
	add_span(text, (struct span){piece, (size_t)length});
	free(piece);
}

void text_add(struct buf *text, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	add_list(text, format, arguments);
	va_end(arguments);
}

void text_fill(struct buf *text, size_t count)
{
	char *at = buf_reserve(text, count + 1, NULL);
	if (at == NULL) {
		abort();
	}
	for (size_t i = 0; i < count; i++) {
		at[i] = (char)('a' + i % 26);
	}
	buf_commit(text, count);
}

static void write_journal(struct agent *agent, const char *direction, struct span line)
{
	if (agent->journal < 0) {
		return;
	}
	struct buf text;
	buf_init(&text, buffer_max);
	add_span(&text, span_of(direction));
	add_span(&text, line);
	add_span(&text, SPAN_LITERAL("\n"));
	if (write(agent->journal, text.data, text.len) != (ssize_t)text.len) {
		perror("scripted-agent: journal");
	}
	buf_finish(&text);
}

void agent_send_raw(struct agent *agent, struct span bytes)
{
	add_span(&agent->out, bytes);
}

void agent_send_line(struct agent *agent, struct span line)
{
	write_journal(agent, "> ", line);
	add_span(&agent->out, line);
	add_span(&agent->out, agent->crlf ? SPAN_LITERAL("\r\n") : SPAN_LITERAL("\n"));
}

void agent_send(struct agent *agent, const char *format, ...)
{
	struct buf line;
	buf_init(&line, buffer_max);
	va_list arguments;
	va_start(arguments, format);
	add_list(&line, format, arguments);
	va_end(arguments);
	agent_send_line(agent, buf_span(&line));
	buf_finish(&line);
}

/* Writes what the reader takes now; false if there is no reader any more. */
static bool write_some(struct agent *agent)
{
	struct span bytes = buf_span(&agent->out);
	ssize_t count = write(STDOUT_FILENO, bytes.data, bytes.len);
	if (count >= 0) {
		buf_consume(&agent->out, (size_t)count);
		return true;
	}
	if (errno == EAGAIN || errno == EINTR) {
		return true;
	}
	buf_clear(&agent->out);
	return false;
}

void agent_flush(struct agent *agent)
{
	while (agent->out.len > 0) {
		struct pollfd writable = {.fd = STDOUT_FILENO, .events = POLLOUT};
		if (poll(&writable, 1, 10000) == 0 || !write_some(agent)) {
			return;
		}
	}
}

static void end_input(struct agent *agent)
{
	agent->in_ended = true;
	if (agent->options.slow_exit != NULL) {
		agent_flush(agent);
		sleep((unsigned int)strtoul(agent->options.slow_exit, NULL, 10));
	}
	if (agent->options.ignore_eof) {
		alarm(AGENT_LEFTOVER_SECONDS);
	} else {
		agent->must_leave = true;
	}
}

static void read_some(struct agent *agent)
{
	char *room = buf_reserve(&agent->in, READ_SIZE, NULL);
	if (room == NULL) {
		abort();
	}
	ssize_t count = read(STDIN_FILENO, room, READ_SIZE);
	if (count > 0) {
		buf_commit(&agent->in, (size_t)count);
	} else if (count == 0 || errno != EINTR) {
		end_input(agent);
	}
}

/* Handles the complete lines; stops if a command says so. */
static void handle_lines(struct agent *agent)
{
	while (!agent->stopped_reading) {
		struct span bytes = buf_span(&agent->in);
		const char *newline = NULL;
		if (bytes.len > agent->scanned) {
			newline = memchr(
				bytes.data + agent->scanned, '\n', bytes.len - agent->scanned);
		}
		if (newline == NULL) {
			agent->scanned = bytes.len;
			return;
		}
		struct span line = {bytes.data, (size_t)(newline - bytes.data)};
		write_journal(agent, "< ", line);
		if (!agent->options.never_answer) {
			agent_handle_line(agent, line);
		}
		buf_consume(&agent->in, line.len + 1);
		agent->scanned = 0;
	}
}

static void wait_for_work(struct agent *agent, bool busy)
{
	bool reads = !agent->in_ended && !agent->stopped_reading;
	struct pollfd fds[] = {
		{.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
		{.fd = agent->out.len > 0 ? STDOUT_FILENO : -1, .events = POLLOUT},
	};
	int timeout_ms = turns_timeout(agent);
	if (timeout_ms < 0 || timeout_ms > 1000) {
		timeout_ms = 1000; // a signal may come between the look at it and poll
	}
	if (poll(fds, 2, busy && agent->out.len < AGENT_OUT_PAUSE ? 0 : timeout_ms) < 0) {
		return;
	}
	if (fds[1].revents != 0 && !write_some(agent) && !agent->options.ignore_eof) {
		agent->must_leave = true;
	}
	if (fds[0].revents != 0) {
		read_some(agent);
	}
}

int agent_run(struct agent *agent)
{
	bool busy = false;
	while (!agent->must_leave) {
		wait_for_work(agent, busy);
		if (read_again != 0) {
			read_again = 0;
			agent->stopped_reading = false;
		}
		handle_lines(agent);
		busy = turns_run(agent);
	}
	agent_flush(agent);
	return agent->exit_status;
}
