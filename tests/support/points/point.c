/* SPDX-License-Identifier: MIT */
#include "base/point.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * What the points do, as the environment says:
 *
 *   ACP_POINT=NAME:COUNT:ACTION  at the COUNTth time that NAME is reached: kill, stop, enospc
 *                                or eio
 *   ACP_POINT_WHEN=FILE          not before this file exists; nothing is counted until then
 *   ACP_POINT_LOG=FILE           the name of each point that is reached, a line each
 */
enum { NAME_SIZE = 64 };

static void act(const char *action)
{
	if (strcmp(action, "kill") == 0) {
		kill(getpid(), SIGKILL);
	} else if (strcmp(action, "stop") == 0) {
		kill(getpid(), SIGSTOP);
	} else if (strcmp(action, "enospc") == 0) {
		errno = ENOSPC;
	} else if (strcmp(action, "eio") == 0) {
		errno = EIO;
	} else {
		abort(); // a test whose request is missing would prove nothing
	}
}

static void note(const char *name)
{
	const char *path = getenv("ACP_POINT_LOG");
	char line[NAME_SIZE];
	int len = snprintf(line, sizeof(line), "%s\n", name);
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	if (fd >= 0) {
		if (write(fd, line, (size_t)len) != len) {
			abort();
		}
		close(fd);
	}
}

static bool is_time(void)
{
	const char *when = getenv("ACP_POINT_WHEN");
	return !when || access(when, F_OK) == 0;
}

bool point(const char *name)
{
	static atomic_uint reached;
	int errnum = errno;
	const char *order = is_time() ? getenv("ACP_POINT") : NULL;
	note(name);
	errno = errnum;
	size_t len = strlen(name);
	if (!order || strncmp(order, name, len) != 0 || order[len] != ':') {
		return false;
	}
	char *end;
	unsigned long count = strtoul(order + len + 1, &end, 10);
	if (atomic_fetch_add(&reached, 1) + 1 != count) {
		return false;
	}
	const char *action = end + (*end == ':');
	act(action);
	return *action == 'e';
}
