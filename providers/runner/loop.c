/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/runner/runner.h"

/* The runner's loop: each turn waits for the channel, the processes and the worker at once. */

enum {
	INPUT_SIZE = 65536,
	OUTPUTS_MAX = 64, // per turn, so that input is read, too
	US_PER_MS = 1000,
};

uint64_t runner_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void runner_watch(struct runner *runner, int fd, short events,
	void (*on_ready)(void *data, short events), void *data)
{
	if (runner->watch_count == runner->watch_capacity) {
		runner->watch_capacity = runner->watch_capacity * 2 + 16;
		runner->polls =
			mem_realloc(runner->polls, runner->watch_capacity * sizeof(*runner->polls));
		runner->watches = mem_realloc(
			runner->watches, runner->watch_capacity * sizeof(*runner->watches));
	}
	runner->polls[runner->watch_count] = (struct pollfd){.fd = fd, .events = events};
	runner->watches[runner->watch_count++] = (struct watch){on_ready, data};
}

void runner_tell(struct runner *runner, const struct runner_message *message)
{
	struct error err;
	if (!mux_send(runner->mux, message, &err)) {
		runner->why = "the broker does not read its messages";
	}
}

void runner_tell_failure(struct runner *runner, uint64_t id, const struct error *err)
{
	struct runner_message message;
	runner_set_failure(&message, id, err);
	runner_tell(runner, &message);
}

/* ---- the channel ---- */

/* False: no bytes have arrived yet, or the channel has ended. */
static bool read_input(struct runner *runner)
{
	static char bytes[INPUT_SIZE];
	struct error err;
	ssize_t count = read(runner->in, bytes, sizeof(bytes));
	if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
		return false;
	}
	if (count <= 0) {
		channel_lose(runner);
	} else if (!mux_receive(runner->mux, (struct span){bytes, (size_t)count}, runner_now_us(),
			   &err)) {
		runner->why = "the broker broke the rules of the link";
	}
	return count > 0;
}

static void on_input(void *data, short events)
{
	struct runner *runner = data;
	if (runner->in >= 0) {
		(void)read_input(runner);
	}
}

/* The broker reads no more. First carries out all messages that it has sent before. */
static void end_channel(struct runner *runner)
{
	while (runner->in >= 0 && !runner->why && read_input(runner)) {
	}
	if (runner->in >= 0) {
		channel_lose(runner);
	}
}

/*
 * If EPIPE never comes, the time limit without a byte still detects a broker that has stopped
 * reading.
 */
static void write_output(struct runner *runner)
{
	for (int i = 0; i < OUTPUTS_MAX && runner->out >= 0; i++) {
		struct span bytes = mux_output(runner->mux, runner_now_us());
		ssize_t count = bytes.len > 0 ? write(runner->out, bytes.data, bytes.len) : 0;
		if (count > 0) {
			mux_sent(runner->mux, (size_t)count);
		} else if (count < 0 && errno != EAGAIN && errno != EINTR) {
			end_channel(runner);
			return;
		} else {
			return;
		}
	}
}

/* ---- processes and the worker ---- */

static void on_losses(void *data, short events)
{
	struct runner *runner = data;
	if (!runs_read_losses(runner)) {
		runner->why = "the process that starts others was killed";
	}
}

static void on_worker(void *data, short events)
{
	struct runner *runner = data;
	worker_raise_done(runner->worker);
}

/* Continues the spawner in case it was stopped: every process that it starts could do that. */
static void reap(struct runner *runner)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid == runner->spawner && WIFSTOPPED(status)) {
			kill(pid, SIGCONT);
		}
	}
}

static void on_signal(void *data, short events)
{
	struct runner *runner = data;
	struct signalfd_siginfo info;
	while (read(runner->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(runner);
		} else {
			runner->why = "a signal ended the runner";
		}
	}
}

/* ---- turns ---- */

static void gather(struct runner *runner)
{
	runner->watch_count = 0;
	if (runner->in >= 0) {
		bool has_output = mux_output(runner->mux, runner_now_us()).len > 0;
		runner_watch(runner, runner->in, POLLIN, on_input, runner);
		/* Also without output, because POLLERR shows that nobody reads any more. */
		runner_watch(runner, runner->out, has_output ? POLLOUT : 0, NULL, NULL);
	}
	runner_watch(runner, runner->signal_fd, POLLIN, on_signal, runner);
	runner_watch(runner, runner->spawner_socket, POLLIN, on_losses, runner);
	runner_watch(runner, worker_fd(runner->worker), POLLIN, on_worker, runner);
	runs_watch(runner);
	connections_watch(runner);
	channel_watch(runner);
	alive_watch(runner);
}

static int sleep_ms(const struct runner *runner)
{
	uint64_t now_us = runner_now_us();
	uint64_t until_us = mux_heard_us(runner->mux) + runner->grace_us;
	uint64_t due_us = channel_due_us(runner);
	until_us = due_us < until_us ? due_us : until_us;
	due_us = runner->in >= 0 ? mux_due_us(runner->mux) : until_us;
	until_us = due_us < until_us ? due_us : until_us;
	uint64_t wait_ms = until_us > now_us ? (until_us - now_us) / US_PER_MS + 1 : 0;
	return wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}

static void raise_ready(struct runner *runner)
{
	for (size_t i = 0; i < runner->watch_count; i++) {
		const struct pollfd *poll = &runner->polls[i];
		bool is_reader_gone = poll->fd == runner->out && (poll->revents & POLLERR);
		if (is_reader_gone) {
			end_channel(runner);
		} else if (poll->revents && runner->watches[i].on_ready) {
			runner->watches[i].on_ready(runner->watches[i].data, poll->revents);
		}
	}
}

void runner_loop(struct runner *runner)
{
	while (!runner->why) {
		requests_step(runner);
		write_output(runner);
		gather(runner);
		int count = poll(runner->polls, runner->watch_count, sleep_ms(runner));
		if (count > 0) {
			raise_ready(runner);
		}
		channel_step(runner);
		kill(getppid(), SIGCONT); // the keeper
		if (!runner->why &&
			runner_now_us() >= mux_heard_us(runner->mux) + runner->grace_us) {
			runner->why = "no byte came from the broker for too long";
			runner->channel.is_silent = true;
		}
	}
}
