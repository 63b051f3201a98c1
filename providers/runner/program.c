/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/span.h"
#include "providers/runner/runner.h"

/*
 * The file of the running program, and files that other brokers left beside it. Brokers of several
 * versions may use the same account. So each program holds a shared lock on its file, and removes
 * only files that it can lock exclusively. A program has no lock yet between the moment when a
 * broker chooses its file and its start; therefore no file is removed within a day of its last use.
 */
enum { UNUSED_S = 24 * 3600 };

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/*
 * Whether it is a program of ours, or part of one from an interrupted upload
 * (providers/remote/start.sh).
 */
static bool is_ours(const char *name)
{
	return begins_with(name, "acp-runner.") || begins_with(name, ".acp-runner.");
}

static void remove_unused(int folder, const char *name)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool is_unused = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	                 status.st_uid == geteuid() && status.st_mtime < time(NULL) - UNUSED_S &&
	                 flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (is_unused) {
		unlinkat(folder, name, 0);
	}
}

static void sweep(const char *folder, const char *own)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	while (dir && (entry = readdir(dir))) {
		if (is_ours(entry->d_name) && strcmp(entry->d_name, own) != 0) {
			remove_unused(dirfd(dir), entry->d_name);
		}
	}
	if (dir) {
		closedir(dir);
	}
}

int program_hold(void)
{
	char path[PATH_MAX];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) != 0 || len <= 0) {
		return fd;
	}
	path[len] = '\0';
	char *slash = strrchr(path, '/');
	if (slash && begins_with(slash + 1, "acp-runner.")) {
		*slash = '\0';
		futimens(fd, NULL); // records the use
		sweep(path, slash + 1);
	}
	return fd;
}
