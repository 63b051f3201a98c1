/* SPDX-License-Identifier: MIT */
#include "base/detached.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/launch.h"
#include "base/libc.h"

/* The one message of the supervisor. */
struct verdict {
	bool has_failed; // to start
	struct launch_failure failure;
	int status; // of waitpid(2)
};

struct detached {
	struct ev_loop *loop;
	struct launch launch; // for the text of an error; borrows nothing
	ev_io control;        // fd is -1 once the supervisor has spoken
	const struct process_listener *listener;
	void *data;
};

/*
 * ---- the supervisor: a forked image of the broker, with one thread and no memory to allocate ----
 */

/* The supervisor's descriptors, from 3 on. It closes all others that the broker had. */
enum { FD_CONTROL = 3, FD_IN, FD_OUT, FD_ERR, FD_STATUS_READ, FD_STATUS_WRITE, FD_SIGNALS, FD_END };

/* First moves all of them away: one may have the number at which another belongs. */
static bool place_descriptors(const int fds[], int count)
{
	int moved[FD_END];
	assert(count <= FD_END);
	for (int i = 0; i < count; i++) {
		moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
		if (moved[i] < 0) {
			return false;
		}
	}
	for (int i = 0; i < count; i++) {
		if (dup3(moved[i], FD_CONTROL + i, O_CLOEXEC) < 0) {
			return false;
		}
	}
	libc_close_range((unsigned)(FD_CONTROL + count), ~0U, 0);
	/* The first three lead to the editor, which must see their end when the broker ends. */
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
	for (int i = 0; i < FD_CONTROL; i++) {
		if (null_fd < 0 || dup2(null_fd, i) < 0) {
			return false;
		}
	}
	close(null_fd);
	return true;
}

static void speak(const struct verdict *verdict) ATTR_NORETURN;
static void speak(const struct verdict *verdict)
{
	ssize_t size = send(FD_CONTROL, verdict, sizeof(*verdict), MSG_NOSIGNAL);
	_exit(size == (ssize_t)sizeof(*verdict) ? 0 : 1);
}

static void fail_to_prepare(int errnum) ATTR_NORETURN;
static void fail_to_prepare(int errnum)
{
	struct verdict verdict = {
		.has_failed = true, .failure = {.step = LAUNCH_PREPARE, .errnum = errnum}};
	speak(&verdict);
}

/* Waits for the end of the program, or of the broker, whichever comes first. */
static void supervise(pid_t pid) ATTR_NORETURN;
static void supervise(pid_t pid)
{
	struct pollfd fds[] = {
		{.fd = FD_SIGNALS, .events = POLLIN}, {.fd = FD_CONTROL, .events = POLLIN}};
	struct verdict verdict = {0};
	pid_t ended = 0;
	while (ended == 0) {
		struct signalfd_siginfo info;
		(void)!poll(fds, 2, -1);
		if (fds[1].revents) {
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
			(void)waitpid(pid, &verdict.status, 0);
			_exit(1);
		}
		(void)!read(FD_SIGNALS, &info, sizeof(info));
		ended = waitpid(pid, &verdict.status, WNOHANG);
	}
	ssize_t size = read(FD_STATUS_READ, &verdict.failure, sizeof(verdict.failure));
	verdict.has_failed = size == (ssize_t)sizeof(verdict.failure);
	speak(&verdict);
}

static void become_supervisor(struct launch *launch, const int pipes[4]) ATTR_NORETURN;
static void become_supervisor(struct launch *launch, const int pipes[4])
{
	int status[2];
	sigset_t child;
	launch_reset_signals();
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_SETMASK, &child, NULL);
	if (pipe2(status, O_CLOEXEC) != 0) {
		_exit(1);
	}
	int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	int in = pipes[1] >= 0 ? pipes[1] : open("/dev/null", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	const int fds[] = {pipes[0], in, pipes[2], pipes[3], status[0], status[1], signals};
	if (signals < 0 || !place_descriptors(fds, ARRAY_LENGTH(fds))) {
		_exit(1);
	}
	pid_t pid = fork();
	if (pid < 0) {
		fail_to_prepare(errno);
	}
	if (pid == 0) {
		launch->fds[0] = FD_IN;
		launch->fds[1] = FD_OUT;
		launch->fds[2] = FD_ERR;
		launch_run(launch, FD_STATUS_WRITE);
	}
	close(FD_IN);
	close(FD_OUT);
	close(FD_ERR);
	close(FD_STATUS_WRITE);
	supervise(pid);
}

/*
 * The supervisor becomes init's child, because the broker is not a subreaper during these two
 * forks. Meanwhile processes of the broker could escape only if the spawner was killed at the same
 * moment, and even then the guards end their trees themselves.
 */
static bool fork_supervisor(struct launch *launch, const int pipes[4], struct error *err)
{
	int was_subreaper = 0;
	prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper, 0, 0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	pid_t middle = fork();
	int errnum = errno;
	if (middle == 0) {
		bool is_alone = setsid() >= 0;
		pid_t pid = is_alone ? fork() : -1;
		if (pid == 0) {
			become_supervisor(launch, pipes);
		}
		_exit(pid > 0 ? 0 : 1);
	}
	int status = 0;
	while (middle > 0 && waitpid(middle, &status, 0) < 0 && errno == EINTR) {
	}
	prctl(PR_SET_CHILD_SUBREAPER, was_subreaper, 0, 0, 0);
	return middle > 0 ? status == 0 || error_set(err, ERROR_SYSTEM, "forking a supervisor")
	                  : error_set_errno(err, errnum, "forking a supervisor");
}

/* ---- what the supervisor says ---- */

void detached_destroy(struct detached *detached)
{
	if (!detached) {
		return;
	}
	io_close(detached->loop, &detached->control); // which the supervisor notices
	launch_finish(&detached->launch);
	free(detached);
}

static struct process_status status_of(int status)
{
	return (struct process_status){.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
		.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

/* Raises one event, and touches nothing afterwards: the handler may have destroyed it. */
static void on_control(struct ev_loop *loop, ev_io *io, int events)
{
	struct detached *self = CONTAINER_OF(io, struct detached, control);
	struct verdict verdict;
	struct error err;
	ssize_t size = recv(io->fd, &verdict, sizeof(verdict), MSG_DONTWAIT);
	if (size < 0 && io_is_transient(errno)) {
		return;
	}
	io_close(loop, io);
	if (size != (ssize_t)sizeof(verdict)) {
		error_set(&err, ERROR_SYSTEM, "the supervisor of %s was killed",
			self->launch.argv[0]);
		self->listener->on_failed(self->data, &err);
	} else if (verdict.has_failed) {
		launch_describe(&self->launch, &verdict.failure, &err);
		self->listener->on_failed(self->data, &err);
	} else {
		self->listener->on_exited(self->data, status_of(verdict.status));
	}
}

/* ---- its beginning ---- */

static bool pack(struct launch *launch, const struct process_spec *spec, struct error *err)
{
	const struct process_spec process = {
		.argv = spec->argv, .env = spec->env, .cwd = spec->cwd};
	ATTR_CLEANUP(fd_cleanup) int memory = launch_pack(&process, err);
	*launch = (struct launch){.fds = {-1, -1, -1}, .group_fd = -1};
	return memory >= 0 && launch_unpack(launch, memory, err);
}

static bool start(struct detached *self, const struct process_spec *spec, struct error *err)
{
	int sockets[2];
	if (!pack(&self->launch, spec, err)) {
		return false;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making a socket for a supervisor");
	}
	ev_io_set(&self->control, sockets[0], EV_READ);
	ev_io_start(self->loop, &self->control);
	const int theirs[4] = {sockets[1], spec->in, spec->out, spec->err};
	bool ok = fork_supervisor(&self->launch, theirs, err);
	fd_close(&sockets[1]);
	return ok;
}

struct detached *detached_start(struct ev_loop *loop, const struct process_spec *spec,
	const struct process_listener *listener, void *data, struct error *err)
{
	struct detached *self = mem_alloc_zero(sizeof(*self));
	self->loop = loop;
	self->listener = listener;
	self->data = data;
	ev_io_init(&self->control, on_control, -1, EV_READ);
	if (!start(self, spec, err)) {
		detached_destroy(self);
		return NULL;
	}
	return self;
}
