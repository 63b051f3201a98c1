/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/agent/turn.h"

/* Misbehaviour on demand. Every process that is left behind here ends by its own alarm. */

static enum progress run_garbage(struct turn *turn, const char *argument, const struct reply *reply)
{
	static const char *const lines[] = {
		"this is no JSON {",
		"{\"jsonrpc\":\"2.0\",\"method\":",
		"[1,2,3]",
		"\"a string\"",
		"42",
		"{\"level\":\"info\",\"message\":\"JSON, but no JSON-RPC\"}",
		"\xff\xfe bytes that are no UTF-8",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		agent_send_raw(turn->agent, span_of(lines[i]));
		agent_send_raw(turn->agent, SPAN_LITERAL("\n"));
	}
	return COMMAND_DONE;
}

static enum progress run_line(struct turn *turn, const char *argument, const struct reply *reply)
{
	agent_send_raw(turn->agent, span_of(argument));
	agent_send_raw(turn->agent, SPAN_LITERAL("\n"));
	return COMMAND_DONE;
}

static enum progress run_crlf(struct turn *turn, const char *argument, const struct reply *reply)
{
	turn->agent->crlf = true;
	return COMMAND_DONE;
}

/* long SIZE: a notification whose line is about SIZE bytes. */
static enum progress run_long(struct turn *turn, const char *argument, const struct reply *reply)
{
	struct buf text;
	buf_init(&text, (size_t)1 << 29);
	text_fill(&text, strtoul(argument, NULL, 10));
	agent_send(turn->agent,
		"{\"jsonrpc\":\"2.0\",\"method\":\"_long\",\"params\":{\"text\":\"%.*s\"}}",
		PRINTF_BYTES(text));
	buf_finish(&text);
	return COMMAND_DONE;
}

/* long-answer SIZE: the prompt's answer, too long to pass, with its id at the end. */
static enum progress run_long_answer(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	struct buf text;
	buf_init(&text, (size_t)1 << 29);
	text_fill(&text, strtoul(argument, NULL, 10));
	agent_send(turn->agent,
		"{\"jsonrpc\":\"2.0\",\"result\":{\"stopReason\":\"end_turn\","
		"\"_meta\":{\"text\":\"%.*s\"}},\"id\":%s}",
		PRINTF_BYTES(text), turn->request_id);
	buf_finish(&text);
	return COMMAND_ENDED;
}

/* long-request SIZE: a request that is too long to pass; somebody has to answer it. */
static enum progress run_long_request(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		turn_say_reply(turn, "_long", reply);
		return COMMAND_DONE;
	}
	struct buf text;
	buf_init(&text, (size_t)1 << 29);
	text_fill(&text, strtoul(argument, NULL, 10));
	turn_call(turn, "_long", "{\"text\":\"%.*s\"}", PRINTF_BYTES(text));
	buf_finish(&text);
	return COMMAND_WAITS;
}

static enum progress run_answer_twice(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	agent_answer(turn->agent, span_of(turn->request_id), "{\"stopReason\":\"end_turn\"}");
	agent_answer(turn->agent, span_of(turn->request_id), "{\"stopReason\":\"refusal\"}");
	return COMMAND_ENDED;
}

static enum progress run_stderr(struct turn *turn, const char *argument, const struct reply *reply)
{
	long lines = strtol(argument, NULL, 10);
	for (long i = 0; i < lines; i++) {
		fprintf(stderr, "stderr line %ld of %ld\n", i + 1, lines);
	}
	return COMMAND_DONE;
}

static enum progress run_log(struct turn *turn, const char *argument, const struct reply *reply)
{
	fprintf(stderr, "%s\n", argument);
	return COMMAND_DONE;
}

static enum progress run_exit(struct turn *turn, const char *argument, const struct reply *reply)
{
	agent_flush(turn->agent);
	_exit((int)strtol(argument, NULL, 10));
}

static enum progress run_allocate(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	size_t size = strtoul(argument, NULL, 10);
	char *kept = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (kept != MAP_FAILED) {
		memset(kept, 1, size);
	}
	return COMMAND_DONE;
}

static enum progress run_burn(struct turn *turn, const char *argument, const struct reply *reply)
{
	volatile bool is_on = true;
	while (is_on) {
	}
	return COMMAND_DONE;
}

static enum progress run_crash(struct turn *turn, const char *argument, const struct reply *reply)
{
	const struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	agent_flush(turn->agent);
	signal(SIGABRT, SIG_DFL);
	raise(SIGABRT);
	_exit(1);
}

static enum progress run_stop_reading(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	turn->agent->stopped_reading = true;
	return COMMAND_DONE;
}

static enum progress run_ignore_eof(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	turn->agent->options.ignore_eof = true;
	return COMMAND_DONE;
}

static enum progress run_ignore_term(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	return COMMAND_DONE;
}

static enum progress run_close_stdout(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	agent_flush(turn->agent);
	close(STDOUT_FILENO);
	return COMMAND_DONE;
}

static _Noreturn void stay_behind(void)
{
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	alarm(AGENT_LEFTOVER_SECONDS);
	for (;;) {
		pause();
	}
}

/* A daemon: forked twice, in a session of its own, without descriptors and environment. */
static enum progress run_fork(struct turn *turn, const char *argument, const struct reply *reply)
{
	long count = strtol(argument, NULL, 10);
	pid_t pid = 1;
	for (long i = 0; i < count && pid > 0; i++) {
		pid = fork();
	}
	if (pid == 0) {
		alarm(60);
		pause();
		_exit(0);
	}
	return COMMAND_DONE;
}

static enum progress run_double_fork(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	int ready[2];
	if (pipe(ready) != 0) {
		abort();
	}
	pid_t middle = fork();
	if (middle == 0) {
		setsid();
		if (fork() == 0) {
			agent_note_pid(turn->agent, getpid());
			clearenv();
			close(STDIN_FILENO);
			close(STDOUT_FILENO);
			close(STDERR_FILENO);
			close(ready[0]);
			close(ready[1]);
			stay_behind();
		}
		_exit(0);
	}
	char byte;
	close(ready[1]);
	(void)!read(ready[0], &byte, 1); // waits until the daemon has noted its id and closed
	close(ready[0]);
	waitpid(middle, NULL, 0);
	return COMMAND_DONE;
}

/* A child that keeps the agent's stdout and stderr open. */
static enum progress run_hold_stdout(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	pid_t child = fork();
	if (child == 0) {
		stay_behind();
	}
	agent_note_pid(turn->agent, child);
	return COMMAND_DONE;
}

const struct command trouble_commands[] = {
	{"garbage", run_garbage, "lines that are no JSON-RPC"},
	{"banner", run_line, "TEXT: a line of text on stdout"},
	{"crlf", run_crlf, "end lines with CRLF from here on"},
	{"long", run_long, "SIZE: a notification of SIZE bytes"},
	{"long-answer", run_long_answer, "SIZE: an answer of SIZE bytes, its id last"},
	{"long-request", run_long_request, "SIZE: a request of SIZE bytes"},
	{"answer-twice", run_answer_twice, "answer the prompt twice"},
	{"stderr", run_stderr, "LINES: lines on stderr"},
	{"log", run_log, "TEXT: one line on stderr"},
	{"exit", run_exit, "STATUS: end the agent here"},
	{"allocate", run_allocate, "BYTES: use so much memory, and keep it"},
	{"burn", run_burn, "use the processor for ever"},
	{"crash", run_crash, "end by SIGABRT"},
	{"stop-reading", run_stop_reading, "read nothing until SIGUSR1"},
	{"ignore-eof", run_ignore_eof, "stay after the end of input"},
	{"ignore-term", run_ignore_term, "stay after TERM, HUP and INT"},
	{"close-stdout", run_close_stdout, "close stdout and stay"},
	{"fork", run_fork, "COUNT: leave so many children behind, as far as that works"},
	{"double-fork", run_double_fork, "leave a daemon behind"},
	{"hold-stdout", run_hold_stdout, "leave a child behind that holds stdout"},
	{0},
};
