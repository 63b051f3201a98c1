/* SPDX-License-Identifier: MIT */
#ifndef TESTS_STDERR_CAPTURE_H
#define TESTS_STDERR_CAPTURE_H

/* For tests of the log. Include it after cmocka.h. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

/* Stderr replaced for one test. */
struct capture {
	int saved;   // the real stderr
	int read;    // the end that reads what was logged
	int wait_ms; // a terminal passes on written bytes a little later
};

static inline void capture_start(struct capture *capture, int read_fd, int write_fd)
{
	capture->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	assert_true(capture->saved >= 0);
	assert_int_equal(dup2(write_fd, STDERR_FILENO), STDERR_FILENO);
	close(write_fd);
	capture->read = read_fd;
	capture->wait_ms = isatty(STDERR_FILENO) ? 100 : 0;
	log_init(LOG_LEVEL_INFO);
}

static inline void capture_stop(struct capture *capture)
{
	dup2(capture->saved, STDERR_FILENO);
	close(capture->saved);
	close(capture->read);
	log_init(LOG_LEVEL_INFO);
}

static inline void capture_pipe(struct capture *capture)
{
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	capture_start(capture, fds[0], fds[1]);
}

static inline void capture_socket(struct capture *capture)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	capture_start(capture, fds[0], fds[1]);
}

/* Captures through a raw terminal, which does not change the bytes. */
static inline void capture_terminal(struct capture *capture)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	struct termios settings;
	assert_int_equal(tcgetattr(slave, &settings), 0);
	cfmakeraw(&settings);
	assert_int_equal(tcsetattr(slave, TCSANOW, &settings), 0);
	capture_start(capture, master, slave);
}

/* Everything that can be read now, terminated; valid until the next call. */
static inline const char *logged(struct capture *capture)
{
	static char text[1 << 20];
	size_t len = 0;
	struct pollfd readable = {.fd = capture->read, .events = POLLIN};
	while (len + 1 < sizeof(text) && poll(&readable, 1, capture->wait_ms) > 0) {
		ssize_t count = read(capture->read, text + len, sizeof(text) - 1 - len);
		if (count <= 0) {
			break;
		}
		len += (size_t)count;
	}
	text[len] = '\0';
	return text;
}

#endif
