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
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

enum { READ_SIZE = 64 << 10 };

static const char *const own_environment[] = {"HOME=/nonexistent",
	"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
	"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", NULL};

/* The ends for the program; CLOEXEC. */
struct ends {
	int in, out, words;
};

static int spawn(pid_t *pid, const struct run_git_call *call, const struct ends *ends)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends->in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends->out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends->words, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int failed = posix_spawnp(pid, call->argv[0], &actions, &attributes,
		(char *const *)call->argv, (char *const *)call->environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

/* 1: bytes or the end can be read; 0: timeout; -1: errno. */
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

/* Its exit status; -1: it was killed. */
static int wait_for(pid_t pid)
{
	int status = 0;
	pid_t waited;
	do {
		waited = waitpid(pid, &status, 0);
	} while (waited < 0 && errno == EINTR);
	return waited == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Uses files in memory for stdin and stderr, which need no reader or writer at the other end. */
static bool open_ends(struct ends *ends, struct span input, struct error *err)
{
	ends->in = memfd_create("input", MFD_CLOEXEC);
	ends->words = memfd_create("words", MFD_CLOEXEC);
	if (ends->in < 0 || ends->words < 0) {
		return error_set_errno(err, errno, "starting git");
	}
	return fd_write_all(ends->in, input, err) &&
	       (lseek(ends->in, 0, SEEK_SET) == 0 || error_set_errno(err, errno, "starting git"));
}

/* Joins the lines into one: a message may continue over several. */
static void read_words(int fd, char words[RUN_GIT_WORDS_MAX])
{
	ssize_t count = pread(fd, words, RUN_GIT_WORDS_MAX - 1, 0);
	size_t length = count > 0 ? (size_t)count : 0;
	while (length > 0 && words[length - 1] == '\n') {
		length--;
	}
	words[length] = '\0';
	for (char *end = strchr(words, '\n'); end; end = strchr(end, '\n')) {
		*end = ' ';
	}
}

static bool run(
	const struct run_git_call *call, struct ends *ends, int *out_status, struct error *err)
{
	int fds[2];
	pid_t pid;
	if (!fd_pipe(fds, err)) {
		return false;
	}
	ends->out = fds[1];
	int failed = spawn(&pid, call, ends);
	fd_close(&fds[1]);
	if (failed) {
		fd_close(&fds[0]);
		return failed == ENOENT ? error_set(err, ERROR_NOT_FOUND, "there is no git here")
		                        : error_set_errno(err, failed, "starting git");
	}
	bool read_all = read_output(fds[0], call->output, err);
	fd_close(&fds[0]);
	if (!read_all) {
		kill(pid, SIGKILL);
	}
	int status = wait_for(pid);
	if (call->words) {
		read_words(ends->words, call->words);
	}
	if (!read_all) {
		return false;
	}
	*out_status = status;
	return status >= 0 || error_set(err, ERROR_SYSTEM, "git was killed");
}

bool run_git_call(const struct run_git_call *call, int *out_status, struct error *err)
{
	struct ends ends = {-1, -1, -1};
	bool ok = open_ends(&ends, call->input, err) && run(call, &ends, out_status, err);
	fd_close(&ends.in);
	fd_close(&ends.words);
	return ok;
}

bool run_git(const char *const *argv, struct buf *output, struct error *err)
{
	struct run_git_call call = {.argv = argv, .environment = own_environment, .output = output};
	int status;
	return run_git_call(&call, &status, err) &&
	       (status == 0 || error_set(err, ERROR_SYSTEM, "git failed with status %d", status));
}
