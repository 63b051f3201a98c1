/* SPDX-License-Identifier: MIT */
#include "tests/bench/plain.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/lines.h"

static bool refuse(const char *doing, const char *what)
{
	(void)fprintf(stderr, "load_agent: %s %s: %m\n", doing, what);
	return false;
}

bool plain_read(const char *path, char *out, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = 1;

	if (fd < 0) {
		return refuse("opening", path);
	}
	while (len < size && got > 0) {
		got = read(fd, out + len, size - len);
		len += got > 0 ? (size_t)got : 0;
	}
	(void)close(fd);
	return len == size || refuse("reading", path);
}

bool plain_write(const char *path, const char *data, size_t len)
{
	char temporary[PATH_MAX];

	(void)snprintf(temporary, sizeof(temporary), "%s.new", path);
	const int fd = open(temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0) {
		return refuse("creating", temporary);
	}
	const bool written = write_all(fd, data, len) && fsync(fd) == 0;
	(void)close(fd);
	return (written && rename(temporary, path) == 0) || refuse("writing", path);
}

bool plain_run(const char *const *argv)
{
	pid_t pid = 0;
	int status = 0;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0 ||
		waitpid(pid, &status, 0) != pid) {
		return refuse("running", argv[0]);
	}
	if (status != 0) {
		(void)fprintf(stderr, "load_agent: %s ended with %d\n", argv[0], status);
	}
	return status == 0;
}
