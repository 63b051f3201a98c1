/* SPDX-License-Identifier: MIT */
#include "sync/store_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>

#include "base/fd.h"
#include "sync/workspace.h"

enum { LOOK_NS = 50 * 1000 * 1000 };

static int open_in(int folder_fd, const char *path)
{
	return openat(folder_fd, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

bool store_lock_find(const char *folder, int *out_fd, struct error *err)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/" WORKSPACE_LOCK_NAME, folder);
	*out_fd = open_in(AT_FDCWD, path);
	bool is_absent = *out_fd < 0 && (errno == ENOENT || errno == ENOTDIR);
	return *out_fd >= 0 || is_absent || error_set_errno(err, errno, "locking %s", folder);
}

int store_lock_open(struct store *store, struct error *err)
{
	int fd = open_in(store->folder_fd, WORKSPACE_LOCK_NAME);
	if (fd < 0) {
		error_set_errno(err, errno, "locking %s", store->path);
	}
	return fd;
}

bool store_lock_try(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

bool store_lock_wait(int fd, long long deadline_ms, void (*on_wait)(void), struct error *err)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};
	while (!store_lock_try(fd)) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			return error_set_errno(err, errno, "locking the store");
		}
		if (clock_now_ms() >= deadline_ms) {
			return error_set(err, ERROR_TIMEOUT,
				"an acp-broker is still syncing this workspace");
		}
		if (on_wait) {
			on_wait();
			on_wait = NULL;
		}
		nanosleep(&look, NULL);
	}
	return true;
}
