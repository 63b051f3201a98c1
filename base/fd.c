/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

void fd_close(int *fd)
{
	if (*fd >= 0) {
		int saved_errno = errno;
		close(*fd);
		errno = saved_errno;
	}
	*fd = -1;
}

void fd_cleanup(int *fd)
{
	fd_close(fd);
}

bool fd_pipe(int out_fds[2], struct error *err)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) != 0) {
		return error_set_errno(err, errno, "making a pipe");
	}
	out_fds[0] = fds[0];
	out_fds[1] = fds[1];
	return true;
}

void fd_grow_pipe(int fd)
{
	int size = fcntl(fd, F_GETPIPE_SZ);
	if (size > 0 && size < FD_PIPE_LARGE) {
		(void)fcntl(fd, F_SETPIPE_SZ, FD_PIPE_LARGE);
	}
}

bool fd_set_nonblock(int fd, bool on, struct error *err)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0) {
		return error_set_errno(err, errno, "reading the flags of descriptor %d", fd);
	}
	int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	if (wanted != flags && fcntl(fd, F_SETFL, wanted) != 0) {
		return error_set_errno(err, errno, "setting the flags of descriptor %d", fd);
	}
	return true;
}

bool fd_fill_standard(struct error *err)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/*
		 * open returns the lowest free number, which is the one that was just found closed.
		 */
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0) {
			return error_set_errno(err, errno, "opening /dev/null");
		}
	}
	return true;
}

/*
 * Whether opening this file again gives the same file to read from. A named pipe that is opened
 * after its writer has gone never reports its end to poll. The master side of a pseudo-terminal,
 * opened again, is another pseudo-terminal.
 */
static bool can_open_anew(int fd, int flags)
{
	struct stat status;
	if (fstat(fd, &status) != 0) {
		return false;
	}
	if (S_ISFIFO(status.st_mode)) {
		struct statfs fs;
		return flags == O_WRONLY || (fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC);
	}
	unsigned int number;
	return isatty(fd) && ioctl(fd, TIOCGPTN, &number) != 0;
}

int fd_open_anew(int fd, int flags)
{
	if (!can_open_anew(fd, flags)) {
		return -1;
	}
	char path[sizeof("/proc/self/fd/") + 12];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

/* Duplicates the file descriptor, and makes the shared file description non-blocking. */
static bool share(struct fd_inherited *inherited, int fd, int flags, struct error *err)
{
	struct stat status;
	if (fstat(fd, &status) != 0) {
		return error_set_errno(err, errno, "reading descriptor %d", fd);
	}
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0) {
		return error_set_errno(err, errno, "copying descriptor %d", fd);
	}
	bool must_set = !(flags & O_NONBLOCK) && !S_ISREG(status.st_mode);
	if (must_set && !fd_set_nonblock(copy, true, err)) {
		fd_close(&copy);
		return false;
	}
	*inherited = (struct fd_inherited){.fd = copy, .must_clear = must_set};
	return true;
}

bool fd_inherited_init(struct fd_inherited *inherited, int fd, int flags, struct error *err)
{
	int has = fcntl(fd, F_GETFL);
	if (has < 0) {
		return error_set_errno(err, errno, "taking over descriptor %d", fd);
	}
	if ((has & O_ACCMODE) != O_RDWR && (has & O_ACCMODE) != flags) {
		return error_set(err, ERROR_CONFIG, "descriptor %d cannot be %s", fd,
			flags == O_RDONLY ? "read" : "written");
	}
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0) {
		return error_set_errno(err, errno, "opening /dev/null");
	}
	struct fd_inherited taken = {.fd = fd_open_anew(fd, flags)};
	if (taken.fd < 0 && !share(&taken, fd, has, err)) {
		fd_close(&null);
		return false;
	}
	int moved = dup2(null, fd);
	int dup_errno = errno;
	fd_close(&null);
	if (moved < 0) {
		fd_inherited_finish(&taken);
		return error_set_errno(err, dup_errno, "opening /dev/null");
	}
	*inherited = taken;
	return true;
}

void fd_inherited_finish(struct fd_inherited *inherited)
{
	if (inherited->fd >= 0 && inherited->must_clear) {
		/* If this fails, nothing more can be done for the others. */
		(void)!fd_set_nonblock(inherited->fd, false, NULL);
	}
	fd_close(&inherited->fd);
	inherited->must_clear = false;
}

bool fd_write_all(int fd, struct span bytes, struct error *err)
{
	while (bytes.len > 0) {
		ssize_t count = write(fd, bytes.data, bytes.len);
		if (count >= 0) {
			bytes.data += count;
			bytes.len -= (size_t)count;
			continue;
		}
		struct pollfd writable = {.fd = fd, .events = POLLOUT};
		if (errno == EAGAIN && poll(&writable, 1, -1) >= 0) {
			continue;
		}
		if (errno != EINTR) {
			return error_set_errno(err, errno, "writing %zu bytes", bytes.len);
		}
	}
	return true;
}

long long clock_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
