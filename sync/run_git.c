/* SPDX-License-Identifier: MIT */
#include "sync/run_git.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

enum { READ_SIZE = 64 << 10 };

static int spawn(pid_t *pid, const char *const *argv, int out_fd)
{
	const char *const env[] = {"HOME=/nonexistent", "PATH=/usr/local/bin:/usr/bin:/bin",
		"LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int failed = posix_spawnp(
		pid, argv[0], &actions, &attributes, (char *const *)argv, (char *const *)env);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

/* 1: bytes or the end can be read; 0: the time is over; -1: errno. */
static int wait_readable(int fd, long long deadline_ms)
{
	for (;;) {
		long long left = deadline_ms - clock_now_ms();
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
		int ready = left > 0 ? poll(&poll_fd, 1, (int)left) : 0;
		if (ready >= 0 || errno != EINTR) {
			return ready;
		}
	}
}

static bool read_output(int fd, struct buf *output, struct error *err)
{
	long long deadline = clock_now_ms() + RUN_GIT_TIMEOUT_MS;
	for (;;) {
		int ready = wait_readable(fd, deadline);
		if (ready == 0) {
			return error_set(err, ERROR_TIMEOUT, "git did not finish in %d s",
				RUN_GIT_TIMEOUT_MS / 1000);
		}
		char *to = buf_reserve(output, READ_SIZE, err);
		if (!to) {
			return false;
		}
		ssize_t count = ready < 0 ? -1 : read(fd, to, READ_SIZE);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			return error_set_errno(err, errno, "reading from git");
		}
		if (count == 0) {
			return true;
		}
		buf_commit(output, (size_t)count);
	}
}

bool run_git(const char *const *argv, struct buf *output, struct error *err)
{
	int fds[2];
	pid_t pid;
	if (!fd_pipe(fds, err)) {
		return false;
	}
	int failed = spawn(&pid, argv, fds[1]);
	fd_close(&fds[1]);
	if (failed) {
		fd_close(&fds[0]);
		return failed == ENOENT ? error_set(err, ERROR_NOT_FOUND, "there is no git here")
		                        : error_set_errno(err, failed, "starting git");
	}
	bool read_all = read_output(fds[0], output, err);
	fd_close(&fds[0]);
	if (!read_all) {
		kill(pid, SIGKILL);
	}
	int status = 0;
	pid_t waited;
	do {
		waited = waitpid(pid, &status, 0);
	} while (waited < 0 && errno == EINTR);
	if (!read_all) {
		return false;
	}
	return (waited == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
	       error_set(err, ERROR_SYSTEM, "git failed with status %d", WEXITSTATUS(status));
}
