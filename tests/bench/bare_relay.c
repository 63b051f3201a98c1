/* SPDX-License-Identifier: MIT */
/*
 * The physical limit of a relay: starts the command in its arguments and moves
 * bytes between its own stdio and the command's, without looking at them. One
 * poll loop, 64 KiB a direction, each read written on at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUFFER_SIZE = 64 * 1024 };

/* One direction: it reads while it holds nothing, and writes while it holds something. */
struct pump {
	int from; // -1 after its end
	int to;   // -1 once closed
	size_t begin;
	size_t end;
	char data[BUFFER_SIZE];
};

static void pump_close(struct pump *pump)
{
	(void)close(pump->from);
	(void)close(pump->to);
	pump->from = -1;
	pump->to = -1;
}

static void pump_write(struct pump *pump)
{
	const ssize_t put = write(pump->to, pump->data + pump->begin, pump->end - pump->begin);
	if (put < 0) {
		if (errno != EAGAIN && errno != EINTR) {
			pump_close(pump);
		}
		return;
	}
	pump->begin += (size_t)put;
	if (pump->begin == pump->end) {
		pump->begin = 0;
		pump->end = 0;
	}
}

static void pump_read(struct pump *pump)
{
	const ssize_t got = read(pump->from, pump->data, BUFFER_SIZE);
	if (got < 0) {
		if (errno != EAGAIN && errno != EINTR) {
			pump_close(pump);
		}
		return;
	}
	if (got == 0) {
		pump_close(pump);
		return;
	}
	pump->end = (size_t)got;
	pump_write(pump);
}

/* What this direction waits for: for room if it holds something, otherwise for input. */
static struct pollfd pump_wait(const struct pump *pump)
{
	if (pump->begin < pump->end) {
		return (struct pollfd){.fd = pump->to, .events = POLLOUT};
	}
	return (struct pollfd){.fd = pump->from, .events = POLLIN};
}

static void pump_step(struct pump *pump, short revents)
{
	if (revents == 0) {
		return;
	}
	if (pump->begin < pump->end) {
		pump_write(pump);
	} else {
		pump_read(pump);
	}
}

static void relay(struct pump *in, struct pump *out)
{
	while (out->from >= 0) {
		struct pollfd waits[] = {pump_wait(in), pump_wait(out)};
		if (poll(waits, 2, -1) < 0) {
			continue;
		}
		pump_step(in, waits[0].revents);
		pump_step(out, waits[1].revents);
	}
}

/* Starts the command with pipes for its stdin and stdout. */
static bool start_command(char **argv, pid_t *out_pid, int *out_in, int *out_out)
{
	int in[2];
	int out[2];
	posix_spawn_file_actions_t actions;

	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
		return false;
	}
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	const int failed = posix_spawnp(out_pid, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(in[0]);
	(void)close(out[1]);
	*out_in = in[1];
	*out_out = out[0];
	return failed == 0;
}

int main(int argc, char **argv)
{
	static struct pump in;
	static struct pump out;
	pid_t pid = 0;
	int status = 0;

	if (argc < 2 || !start_command(argv + 1, &pid, &in.to, &out.from)) {
		(void)fprintf(stderr, "bare_relay: usage: bare_relay COMMAND [ARG...]\n");
		return 2;
	}
	in.from = STDIN_FILENO;
	out.to = STDOUT_FILENO;
	(void)signal(SIGPIPE, SIG_IGN);
	const int ends[] = {in.from, in.to, out.from, out.to};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		(void)fcntl(ends[i], F_SETFL, fcntl(ends[i], F_GETFL) | O_NONBLOCK);
	}
	relay(&in, &out);
	pump_close(&in);
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
