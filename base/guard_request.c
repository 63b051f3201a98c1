/* SPDX-License-Identifier: MIT */
#include "base/guard_request.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

enum { SEND_DEADLINE_MS = 1000 };

/* Signals are blocked during the fork, so that no handler of the broker runs in the child. */
pid_t guard_fork_spawner(const int sockets[2], enum nest_kind kind)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0) {
		close(sockets[0]); // with this one open, the spawner would not see
		                   // our end close
		spawner_run(sockets[1], kind);
	}
	int errnum = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = errnum;
	return pid;
}

static ssize_t send_request(int socket, const struct guard_request *request, const int *fds)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * GUARD_FDS_MAX)];
	} control = {0};
	int present[GUARD_FDS_MAX];
	size_t count = 0;
	for (int i = 0; i < GUARD_FDS_MAX; i++) {
		if (fds[i] >= 0) {
			present[count++] = fds[i];
		}
	}
	struct iovec part = {.iov_base = (void *)request, .iov_len = sizeof(*request)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = (socklen_t)CMSG_SPACE(count * sizeof(int))};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = (socklen_t)CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(head), present, count * sizeof(int));
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int guard_request_send(
	int socket, const struct guard_request *request, const int fds[GUARD_FDS_MAX])
{
	long long deadline_ms = clock_now_ms() + SEND_DEADLINE_MS;
	while (send_request(socket, request, fds) < 0) {
		int errnum = errno;
		bool is_busy = errnum == EAGAIN || errnum == EINTR || errnum == ETOOMANYREFS;
		if (!is_busy || clock_now_ms() >= deadline_ms) {
			return errnum;
		}
		poll(NULL, 0, 1);
	}
	return 0;
}
